//! Buckets in memory, with the operations that a store needs and S3's rules for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectInput, DeleteObjectOutput, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput,
    HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput,
    PutObjectOutput, StreamingBlob, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};
use sha2::{Digest, Sha256};

use super::BUCKET;

/// Number of objects on a page of a list: few, so that lists have several pages.
const PAGE: usize = 100;
/// Minimum size of a part, except for the last.
const LEAST_PART: usize = 5 << 20;

/// The bucket `bucket`, and no other. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Buckets(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, Upload>,
    begun: usize,
    overwrites: Vec<String>,
    is_heedless: bool,
}

#[derive(Clone)]
struct Stored {
    bytes: Bytes,
    at: SystemTime,
}

struct Upload {
    key: String,
    parts: BTreeMap<i32, Bytes>,
}

impl Buckets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns all objects except those whose name begins with a dot.
    pub(crate) fn objects(&self) -> BTreeMap<String, Bytes> {
        let is_named = |key: &str| !key.rsplit('/').next().unwrap().starts_with('.');
        self.state()
            .objects
            .iter()
            .filter(|(key, _)| is_named(key))
            .map(|(key, stored)| (key.clone(), stored.bytes.clone()))
            .collect()
    }

    pub(crate) fn insert(&self, key: &str, bytes: impl Into<Bytes>) {
        let stored = Stored {
            bytes: bytes.into(),
            at: SystemTime::now(),
        };
        self.state().objects.insert(key.into(), stored);
    }

    /// Returns the number of uploads begun, and of those neither complete nor aborted.
    pub(crate) fn uploads(&self) -> (usize, usize) {
        let state = self.state();
        (state.begun, state.uploads.len())
    }

    /// The keys whose object was overwritten with other bytes.
    pub(crate) fn overwrites(&self) -> Vec<String> {
        self.state().overwrites.clone()
    }

    /// Ignores conditions from now on, like stores that don't know `If-None-Match`.
    pub(crate) fn ignore_conditions(&self) {
        self.state().is_heedless = true;
    }

    /// Acts as a conflicting writer: stores other bytes under the key of a request's path, if
    /// nothing is there.
    pub(crate) fn store_other(&self, path: &str) {
        let key = path
            .trim_start_matches('/')
            .split_once('/')
            .unwrap()
            .1
            .to_owned();
        let stored = Stored {
            bytes: "somebody else's".into(),
            at: SystemTime::now(),
        };
        self.state().objects.entry(key).or_insert(stored);
    }
}

impl State {
    fn store(&mut self, key: &str, bytes: &Bytes) {
        let other = self.objects.insert(
            key.into(),
            Stored {
                bytes: bytes.clone(),
                at: SystemTime::now(),
            },
        );
        if other.is_some_and(|other| other.bytes != *bytes) {
            self.overwrites.push(key.into());
        }
    }
}

fn in_bucket(bucket: &str) -> S3Result<()> {
    if bucket == BUCKET {
        Ok(())
    } else {
        Err(s3_error!(NoSuchBucket))
    }
}

fn e_tag(bytes: &[u8]) -> ETag {
    ETag::Strong(
        Sha256::digest(bytes)[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

async fn content(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let body = body.ok_or_else(|| s3_error!(IncompleteBody))?;
    let chunks: Vec<Bytes> = body
        .try_collect()
        .await
        .map_err(|_| s3_error!(IncompleteBody))?;
    Ok(chunks.concat().into())
}

#[async_trait::async_trait]
impl S3 for Buckets {
    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let PutObjectInput {
            bucket,
            key,
            body,
            if_none_match,
            ..
        } = request.input;
        in_bucket(&bucket)?;
        let bytes = content(body).await?;
        let mut state = self.state();
        if if_none_match.is_some() && state.objects.contains_key(&key) && !state.is_heedless {
            return Err(s3_error!(PreconditionFailed));
        }
        let e_tag = Some(e_tag(&bytes));
        state.store(&key, &bytes);
        Ok(S3Response::new(PutObjectOutput {
            e_tag,
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let GetObjectInput {
            bucket, key, range, ..
        } = request.input;
        in_bucket(&bucket)?;
        let Stored { bytes, at } = self
            .state()
            .objects
            .get(&key)
            .cloned()
            .ok_or_else(|| s3_error!(NoSuchKey))?;
        let total = bytes.len() as u64;
        let e_tag = Some(e_tag(&bytes));
        let (bytes, content_range) = match range {
            None => (bytes, None),
            Some(range) => {
                let range = range.check(total)?;
                let shown = format!("bytes {}-{}/{total}", range.start, range.end - 1);
                (
                    bytes.slice(range.start as usize..range.end as usize),
                    Some(shown),
                )
            }
        };
        let content_length = Some(bytes.len() as i64);
        let (body, last_modified) = (
            Some(StreamingBlob::from(Body::from(bytes))),
            Some(at.into()),
        );
        let output = GetObjectOutput {
            body,
            content_length,
            content_range,
            e_tag,
            last_modified,
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let HeadObjectInput { bucket, key, .. } = request.input;
        in_bucket(&bucket)?;
        let Stored { bytes, at } = self
            .state()
            .objects
            .get(&key)
            .cloned()
            .ok_or_else(|| s3_error!(NoSuchKey))?;
        let (content_length, e_tag) = (Some(bytes.len() as i64), Some(e_tag(&bytes)));
        let last_modified = Some(at.into());
        Ok(S3Response::new(HeadObjectOutput {
            content_length,
            e_tag,
            last_modified,
            ..Default::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let DeleteObjectInput { bucket, key, .. } = request.input;
        in_bucket(&bucket)?;
        self.state().objects.remove(&key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let ListObjectsV2Input {
            bucket,
            prefix,
            continuation_token,
            ..
        } = request.input;
        in_bucket(&bucket)?;
        let prefix = prefix.unwrap_or_default();
        let after = continuation_token.unwrap_or_default();
        let state = self.state();
        let mut rest = state
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let contents: Vec<Object> = rest
            .by_ref()
            .take(PAGE)
            .map(|(key, stored)| Object {
                key: Some(key.clone()),
                size: Some(stored.bytes.len() as i64),
                last_modified: Some(stored.at.into()),
                e_tag: Some(e_tag(&stored.bytes)),
                ..Default::default()
            })
            .collect();
        let is_truncated = rest.next().is_some();
        let next_continuation_token = contents
            .last()
            .and_then(|last| last.key.clone())
            .filter(|_| is_truncated);
        let output = ListObjectsV2Output {
            name: Some(bucket),
            key_count: Some(contents.len() as i32),
            contents: Some(contents),
            is_truncated: Some(is_truncated),
            next_continuation_token,
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let CreateMultipartUploadInput { bucket, key, .. } = request.input;
        in_bucket(&bucket)?;
        let mut state = self.state();
        state.begun += 1;
        let id = format!("upload-{}", state.begun);
        state.uploads.insert(
            id.clone(),
            Upload {
                key: key.clone(),
                parts: BTreeMap::new(),
            },
        );
        let (bucket, key, upload_id) = (Some(bucket), Some(key), Some(id));
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket,
            key,
            upload_id,
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let UploadPartInput {
            body,
            part_number,
            upload_id,
            ..
        } = request.input;
        let bytes = content(body).await?;
        let e_tag = Some(e_tag(&bytes));
        let mut state = self.state();
        let upload = state
            .uploads
            .get_mut(&upload_id)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        upload.parts.insert(part_number, bytes);
        Ok(S3Response::new(UploadPartOutput {
            e_tag,
            ..Default::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let CompleteMultipartUploadInput {
            bucket,
            key,
            upload_id,
            multipart_upload,
            ..
        } = request.input;
        let asked = multipart_upload
            .and_then(|upload| upload.parts)
            .ok_or_else(|| s3_error!(InvalidPart))?;
        let mut state = self.state();
        let upload = state
            .uploads
            .get(&upload_id)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        let mut parts = Vec::new();
        for part in &asked {
            let bytes = part
                .part_number
                .and_then(|number| upload.parts.get(&number));
            parts.push(bytes.cloned().ok_or_else(|| s3_error!(InvalidPart))?);
        }
        if upload.key != key {
            return Err(s3_error!(NoSuchUpload));
        }
        if parts
            .iter()
            .rev()
            .skip(1)
            .any(|part| part.len() < LEAST_PART)
        {
            return Err(s3_error!(EntityTooSmall));
        }
        let bytes = Bytes::from(parts.concat());
        let e_tag = Some(e_tag(&bytes));
        state.uploads.remove(&upload_id);
        state.store(&key, &bytes);
        let (bucket, key) = (Some(bucket), Some(key));
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket,
            key,
            e_tag,
            ..Default::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let upload = self.state().uploads.remove(&request.input.upload_id);
        upload.ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
