//! Sizes and names, two stores in one configuration, and error messages.

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use object_store::memory::InMemory;
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use offcut::hint::Hint;
use offcut::{BuildError, ToolCall, ToolPolicy, ToolReduction};
use offcut_object_store::Objects;

use server::{
    ALL, BUCKET, Fault, KEY_ID, MAX_SINGLE_PUT, SECRET, Server, digest, key, named, noise, written,
};

#[tokio::test(flavor = "multi_thread")]
async fn t2_a_stream_and_a_whole_result_get_the_same_name() {
    let server = Server::start().await;
    let store = server.open("p");
    for (length, is_long) in [
        (MAX_SINGLE_PUT - 1, false),
        (MAX_SINGLE_PUT, false),
        (MAX_SINGLE_PUT + 1, true),
        (2 * MAX_SINGLE_PUT + 5, true),
    ] {
        let content = noise(length, length as u64);
        let plain = key(&format!("trunc/call_{length}"));
        let named = key(&format!("trunc/call_{length}-{}", digest(&content)));
        let uploads = server.buckets().uploads().0;
        let should = if is_long {
            PutOutcome::Taken
        } else {
            PutOutcome::Stored
        };
        assert_eq!(
            store.put(&plain, content.clone()).await.unwrap(),
            should,
            "{length}"
        );
        let mut writer = written(&store, &content).await;
        let put = writer.finish(&plain).await.unwrap();
        let is_there = matches!(put, PutOutcome::AlreadyThere { .. });
        assert_eq!(is_there, !is_long, "{length}: {put:?}");
        if is_long {
            // No request has been sent to the store so far.
            assert!(store.read(&plain, 0..1).await.is_err());
            let wrong = key(&format!("trunc/call_{length}-{}", digest(&Bytes::new())));
            assert_eq!(writer.finish(&wrong).await.unwrap(), PutOutcome::Taken);
            assert_eq!(writer.read(5..10).await.unwrap(), content.slice(5..10));
            assert_eq!(writer.finish(&named).await.unwrap(), PutOutcome::Stored);
            assert!(matches!(
                store.put(&named, content.clone()).await.unwrap(),
                PutOutcome::AlreadyThere { .. }
            ));
            assert_eq!(store.read(&named, ALL).await.unwrap().bytes, content);
            assert!(writer.finish(&named).await.is_err(), "it is done");
        }
        assert_eq!(
            server.buckets().uploads(),
            (uploads + usize::from(is_long), 0),
            "{length}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_content_under_a_content_addressed_key_stays() {
    let server = Server::start().await;
    let store = server.open("p");
    let content = noise(MAX_SINGLE_PUT + 1, 1);
    let named = key(&digest(&content));
    // Same length, different in the last byte only.
    let mut other = content.to_vec();
    *other.last_mut().unwrap() ^= 1;
    server
        .buckets()
        .insert(&format!("p/{named}"), other.clone());
    assert_eq!(
        store.put(&named, content.clone()).await.unwrap(),
        PutOutcome::Taken
    );
    assert_eq!(
        written(&store, &content)
            .await
            .finish(&named)
            .await
            .unwrap(),
        PutOutcome::Taken
    );
    assert_eq!(store.read(&named, ALL).await.unwrap().bytes, other);
    assert_eq!(server.buckets().uploads(), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn o1_a_tool_can_have_its_own_bucket() {
    let (server, other) = (Server::start().await, Server::start().await);
    let reduction = ToolReduction::recommended(server.open("agents"))
        .tool("grep", ToolPolicy::new().backend(other.open("greps")))
        .build()
        .unwrap();
    for (tool, root) in [
        ("grep", "s3://bucket/greps/trunc/"),
        ("read", "s3://bucket/agents/trunc/"),
    ] {
        let text = format!("a line of {tool}\n").repeat(2_000);
        let call = ToolCall::new(tool, tool, "{}");
        let shown = reduction
            .truncate(&call, text.as_str())
            .await
            .unwrap()
            .text();
        let location = Hint::parse(&shown).unwrap().location.unwrap();
        assert_eq!(location.as_str(), format!("{root}{tool}"));
        assert_eq!(
            reduction.read_original(&location).await.unwrap().unwrap(),
            text
        );
    }
    let names = |server: &Server| server.buckets().objects().into_keys().collect::<Vec<_>>();
    assert_eq!(names(&server), ["agents/trunc/read"]);
    assert_eq!(names(&other), ["greps/trunc/grep"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn o2_two_stores_that_are_named_alike_do_not_build() {
    let (server, other) = (Server::start().await, Server::start().await);
    let build = |grep: Objects| {
        ToolReduction::recommended(server.open("agents"))
            .tool("grep", ToolPolicy::new().backend(grep))
            .build()
    };
    // The same bucket twice is one store. The same name at another endpoint is a different store.
    assert!(build(server.open("agents")).is_ok());
    assert!(matches!(
        build(other.open("agents")),
        Err(BuildError::SameLocations)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn locations_mean_the_same_in_another_process() {
    let server = Server::start().await;
    let key = key("chat-42/trunc/call_1");
    let location = server.open("agents/a-1").locate(&key);
    assert_eq!(
        location.as_str(),
        "s3://bucket/agents/a-1/chat-42/trunc/call_1"
    );
    server
        .open("agents/a-1")
        .put(&key, "content".into())
        .await
        .unwrap();
    let other = server.open("agents/a-1/");
    assert_eq!(
        other
            .read(&other.resolve(location.as_str()).unwrap(), ALL)
            .await
            .unwrap()
            .bytes,
        "content"
    );
    for store in [server.open("agents"), server.open("agents/a-10")] {
        assert!(
            store
                .resolve(location.as_str())
                .is_none_or(|key| store.locate(&key) == location)
        );
    }
}

/// Returns the error of `check` with its chain of causes.
async fn said(url: &str) -> String {
    let store = Objects::open(url).unwrap();
    let error = store.check().await.unwrap_err();
    let put = store
        .put(&key("trunc/call_1"), "content".into())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), put.kind());
    assert_ne!(error.kind(), ErrorKind::NotFound, "that is about content");
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    for text in [
        format!("{error:?}"),
        format!("{put:?}"),
        format!("{store:?}"),
    ] {
        let secrets = [KEY_ID, SECRET, "a-wrong-secret", "access_key"];
        assert!(
            !secrets.iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }
    format!("{error}: {cause}")
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_problem_and_show_no_secret() {
    let server = Server::start().await;
    assert_eq!(
        said(&server.url_of("no-such-bucket", "p", SECRET, "")).await,
        "checking s3://no-such-bucket/p/ failed: there is no such bucket; create it, or correct its name: HTTP 404, NoSuchBucket"
    );
    assert_eq!(
        said(&server.url_of(BUCKET, "p", "a-wrong-secret", "")).await,
        "checking s3://bucket/p/ failed: access denied; check the key, its secret and its expiry, and grant it get, put and list on the bucket: \
         HTTP 403, SignatureDoesNotMatch"
    );
    server.fault_always(&Method::PUT, Fault::Refuse(403));
    assert_eq!(
        said(&server.url("p", "")).await,
        "checking s3://bucket/p/ failed: access denied; check the key, its secret and its expiry, and grant it get, put and list on the bucket: \
         HTTP 403, AccessDenied"
    );
    server.stop();
    let unreachable = said(&server.url("p", "&retries=1")).await;
    assert!(
        unreachable.starts_with(
            "checking s3://bucket/p/ failed: the store can't be reached or fails; try again later, or check the endpoint, the network and the `timeout`: "
        ),
        "{unreachable}"
    );
    let error =
        Objects::open(&server.url_of(BUCKET, "p", SECRET, "0&retries=1&backoff=1")).unwrap_err();
    assert!(
        error.to_string().starts_with("the store's URL must"),
        "{error}"
    );
    let error = Objects::open("s3://bucket/p?backoff=0s").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`backoff` must be more than 0 and at most 15 seconds: `100ms`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_list_check_says_so() {
    let server = Server::start().await;
    let store = server.open("p");
    store.check().await.unwrap();
    // S3 then answers 403 for missing objects.
    server.fault(&Method::GET, 2, Fault::Refuse(403));
    assert_eq!(store.check().await.unwrap_err().kind(), ErrorKind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_objects_are_not_listed() {
    use futures_util::StreamExt;
    let server = Server::start().await;
    let store = server.open("p");
    for name in [
        "p/trunc/call_1",
        "p/.hidden",
        "p/a b",
        "px/trunc/call_1",
        "p",
        "q/trunc/call_1",
    ] {
        server.buckets().insert(name, "content");
    }
    let listed: Vec<_> = store
        .list()
        .map(|entry| entry.unwrap().key.to_string())
        .collect()
        .await;
    assert_eq!(listed, ["trunc/call_1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_a_store_is_not_listed_from_above() {
    use futures_util::StreamExt;
    let server = Server::start().await;
    let (outer, inner) = (server.open("agents"), server.open("agents/7/store"));
    inner
        .put(&Key::new("trunc/call_1").unwrap(), "content".into())
        .await
        .unwrap();
    let errors: Vec<_> = outer
        .list()
        .filter_map(async |entry| entry.err())
        .collect()
        .await;
    assert!(
        errors.len() == 1
            && errors[0]
                .to_string()
                .contains("another store was opened below it"),
        "{errors:?}"
    );
    assert!(inner.list().all(async |entry| entry.is_ok()).await);
}

#[test]
fn l7_without_a_runtime_nothing_panics() {
    let spool = tempfile::tempdir().unwrap();
    let store = Objects::builder(Arc::new(InMemory::new()), "memory://mine")
        .spool(spool.path())
        .build()
        .unwrap();
    let poll = |future: &mut (dyn Future<Output = bool> + Unpin)| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(future).poll(&mut context)
    };
    let key = key("trunc/call_1");
    let long = Bytes::from(vec![0; MAX_SINGLE_PUT + 1]);
    let ready = std::task::Poll::Ready(true);
    assert_eq!(
        poll(&mut Box::pin(async {
            store.put(&key, "content".into()).await.is_err()
        })),
        ready
    );
    assert_eq!(
        poll(&mut Box::pin(async {
            store.put(&named(&long), long).await.is_err()
        })),
        ready
    );
    assert_eq!(
        poll(&mut Box::pin(async {
            store.read(&key, ALL).await.is_err()
        })),
        ready
    );
    assert_eq!(
        poll(&mut Box::pin(async { store.writer().await.is_err() })),
        ready
    );
    assert_eq!(
        poll(&mut Box::pin(async { store.check().await.is_err() })),
        ready
    );
    assert_eq!(
        poll(&mut Box::pin(async {
            futures_util::StreamExt::next(&mut store.list())
                .await
                .is_some_and(|e| e.is_err())
        })),
        ready
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_a_result_stays_if_all_of_its_names_are_taken() {
    let server = Server::start().await;
    let store = server.open("agents");
    store.check().await.unwrap();
    let reduction = ToolReduction::recommended(store).build().unwrap();
    for nth in [1, 2, 3] {
        server.fault(&Method::PUT, nth, Fault::StoreOther);
    }
    let text = "a line\n".repeat(2_000);
    let shown = reduction
        .truncate(&ToolCall::new("call_1", "grep", "{}"), text.as_str())
        .await
        .unwrap();
    assert_eq!(shown.text(), text);
    assert_eq!(server.take_met(), 3);
    assert_eq!(server.buckets().overwrites(), Vec::<String>::new());
}
