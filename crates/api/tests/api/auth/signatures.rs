//! S6: what a token says of itself is not believed.

use duly_api::Algorithm::{ES256, EdDSA, RS256};
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::json;

use super::issuer::{
    SECRET, assert_refused, claims, config, key_file, pair, part, private_key, read_with,
    router_with, secret_key, sign, token, with_keys,
};

fn hs() -> EncodingKey {
    EncodingKey::from_secret(SECRET)
}

#[tokio::test]
async fn every_algorithm_is_accepted_with_its_key() {
    let keys = vec![
        secret_key("hs", SECRET),
        pair("rs", RS256, "rsa"),
        pair("es", ES256, "p256"),
        pair("ed", EdDSA, "ed25519"),
    ];
    let router = router_with(&with_keys(keys));
    let rsa = EncodingKey::from_rsa_pem(&private_key("rsa")).unwrap();
    let p256 = EncodingKey::from_ec_pem(&private_key("p256")).unwrap();
    let ed25519 = EncodingKey::from_ed_pem(&private_key("ed25519")).unwrap();
    for (id, name, key, algorithm) in [
        ("hs", "HS256", hs(), Algorithm::HS256),
        ("rs", "RS256", rsa, Algorithm::RS256),
        ("es", "ES256", p256, Algorithm::ES256),
        ("ed", "EdDSA", ed25519, Algorithm::EdDSA),
    ] {
        let token = sign(&json!({"alg": name, "kid": id}), &claims(), &key, algorithm);
        for _ in 0..2 {
            assert_eq!(read_with(&router, &token).await.status, 200, "{name}");
        }
        let mut forged = token.clone();
        let last = if forged.pop() == Some('A') { 'Q' } else { 'A' };
        forged.insert(forged.rfind('.').unwrap() + 1, last);
        assert_refused(&router, &forged, name).await;
    }
}

#[tokio::test]
async fn s06_algorithm_none_is_rejected() {
    let router = router_with(&config());
    let signed = token(&claims());
    let signature = signed.rsplit('.').next().unwrap();
    for name in ["none", "None", "NONE", "nOnE", ""] {
        let header = part(&json!({"alg": name, "kid": "hs"}));
        for signature in ["", signature] {
            let token = format!("{header}.{}.{signature}", part(&claims()));
            assert_refused(&router, &token, name).await;
        }
    }
    let header = part(&json!({"kid": "hs"}));
    let token = format!("{header}.{}.{signature}", part(&claims()));
    assert_refused(&router, &token, "no algorithm").await;
}

#[tokio::test]
async fn s06_a_public_key_is_no_secret() {
    let router = router_with(&with_keys(vec![pair("rs", RS256, "rsa")]));
    let public = std::fs::read(key_file("rsa.pub.pem")).unwrap();
    let trimmed = public.trim_ascii_end();
    for secret in [&public[..], trimmed] {
        let key = EncodingKey::from_secret(secret);
        let header = json!({"alg": "HS256", "kid": "rs"});
        let token = sign(&header, &claims(), &key, Algorithm::HS256);
        assert_refused(&router, &token, "signed with the public key").await;
    }
}

#[tokio::test]
async fn s06_the_algorithm_is_that_of_the_key() {
    let router = router_with(&config());
    for (name, algorithm) in [("HS384", Algorithm::HS384), ("HS512", Algorithm::HS512)] {
        let token = sign(&json!({"alg": name, "kid": "hs"}), &claims(), &hs(), algorithm);
        assert_refused(&router, &token, name).await;
    }
    // A token may not choose among keys by its algorithm either.
    let keys = vec![pair("rs", RS256, "rsa"), pair("es", ES256, "p256")];
    let router = router_with(&with_keys(keys));
    let rsa = EncodingKey::from_rsa_pem(&private_key("rsa")).unwrap();
    let header = json!({"alg": "RS256", "kid": "es"});
    let token = sign(&header, &claims(), &rsa, Algorithm::RS256);
    assert_refused(&router, &token, "the key of another algorithm").await;
    let header = json!({"alg": "PS256", "kid": "rs"});
    let token = sign(&header, &claims(), &rsa, Algorithm::PS256);
    assert_refused(&router, &token, "PS256 with the key for RS256").await;
}

#[tokio::test]
async fn s06_empty_and_extra_parts_are_rejected() {
    let router = router_with(&config());
    let signed = token(&claims());
    let parts: Vec<&str> = signed.split('.').collect();
    let [head, body, signature] = parts[..] else { panic!("{signed}") };
    for bad in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!(".{body}.{signature}"),
        format!("{head}..{signature}"),
        format!("{signed}."),
        format!("{signed}.{signature}"),
        format!(".{signed}"),
        format!("{head}.{body}.{signature}="),
        format!("{head}.{body}!.{signature}"),
        format!("{body}.{head}.{signature}"),
        "é.é.é".to_owned(),
    ] {
        if bad.is_ascii() && !bad.is_empty() {
            assert_refused(&router, &bad, &bad).await;
        }
    }
}

#[tokio::test]
async fn s06_a_key_id_is_only_looked_up() {
    let router = router_with(&config());
    for id in [
        "../../../etc/passwd",
        "/dev/null",
        "hs' OR '1'='1",
        "hs\u{0}",
        "HS",
        "",
        "http://127.0.0.1:1/key",
        &"x".repeat(4000),
    ] {
        let header = json!({"alg": "HS256", "kid": id});
        for secret in [&SECRET[..], b""] {
            let key = EncodingKey::from_secret(secret);
            let token = sign(&header, &claims(), &key, Algorithm::HS256);
            assert_refused(&router, &token, id).await;
        }
    }
    for id in [json!(5), json!(null), json!(["hs"])] {
        let header = json!({"alg": "HS256", "kid": id});
        let token = sign(&header, &claims(), &hs(), Algorithm::HS256);
        // No id at all means the only key.
        let status = read_with(&router, &token).await.status;
        assert_eq!(status, if id.is_null() { 200 } else { 401 }, "{id}");
    }
}

#[tokio::test]
async fn s06_keys_in_the_header_are_ignored() {
    let router = router_with(&config());
    let own: Vec<u8> = SECRET.iter().rev().copied().collect();
    let key = EncodingKey::from_secret(&own);
    let k = part(&json!("x"));
    for (name, value) in [
        ("jku", json!("http://127.0.0.1:1/jwks.json")),
        ("x5u", json!("http://127.0.0.1:1/cert.pem")),
        ("x5c", json!(["MIIB"])),
        ("jwk", json!({"kty": "oct", "k": k, "alg": "HS256"})),
    ] {
        let mut header = json!({"alg": "HS256", "kid": "hs"});
        header[name] = value;
        let forged = sign(&header, &claims(), &key, Algorithm::HS256);
        assert_refused(&router, &forged, name).await;
    }
    let header = json!({"alg": "HS256", "kid": "hs", "crit": ["exp"]});
    let token = sign(&header, &claims(), &hs(), Algorithm::HS256);
    assert_refused(&router, &token, "an extension that must be understood").await;
}

#[tokio::test]
async fn s06_a_huge_token_is_not_looked_at() {
    let router = router_with(&config());
    let mut large = claims();
    large["padding"] = json!("x".repeat(7_000));
    assert_refused(&router, &token(&large), "8 KiB").await;
    assert_refused(&router, &"a".repeat(10 << 20), "10 MiB").await;
    assert_refused(&router, &format!("{}.{}.{}", "a".repeat(9000), "b", "c"), "9 KB").await;
}
