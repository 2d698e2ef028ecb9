//! S8 and S27: keys come, go, and are refused where they are weak.

use duly_api::Algorithm::{ES256, EdDSA, RS256};
use duly_api::{Authenticator, KeyConfig, NewToken, SigningKey};
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::json;

use super::issuer::{
    SECRET, assert_refused, claims, clock, config, key_file, pair, read_with, router_with,
    secret_key, sign, token, with_keys,
};

const OTHER: &[u8; 32] = b"vutsrqponmlkjihgfedcba9876543210";

#[tokio::test]
async fn s08_two_keys_live_until_the_old_one_is_removed() {
    let old = token(&claims());
    let header = json!({"alg": "HS256", "kid": "next"});
    let key = EncodingKey::from_secret(OTHER);
    let next = sign(&header, &claims(), &key, Algorithm::HS256);
    let both = with_keys(vec![secret_key("hs", SECRET), secret_key("next", OTHER)]);
    let both = router_with(&both);
    assert_eq!(read_with(&both, &old).await.status, 200);
    assert_eq!(read_with(&both, &next).await.status, 200);
    let one = router_with(&with_keys(vec![secret_key("next", OTHER)]));
    assert_refused(&one, &old, "its key was removed").await;
    assert_eq!(read_with(&one, &next).await.status, 200);
    // With two keys, a token has to say which.
    let header = json!({"alg": "HS256"});
    let nameless = sign(&header, &claims(), &key, Algorithm::HS256);
    assert_refused(&both, &nameless, "no key id").await;
    assert_eq!(read_with(&one, &nameless).await.status, 200);
}

fn why(keys: Vec<KeyConfig>) -> String {
    Authenticator::new(&with_keys(keys), clock()).unwrap_err().to_string()
}

#[test]
fn s27_weak_and_broken_keys_are_refused() {
    for (key, words) in [
        (secret_key("k", b"short"), "weak"),
        (secret_key("k", &[b'x'; 64]), "weak"),
        (secret_key("", SECRET), "id of a key"),
        (secret_key("a b", SECRET), "id of a key"),
        (pair("k", RS256, "rsa1024"), "2048"),
        (pair("k", ES256, "p384"), "P-256"),
        (pair("k", ES256, "rsa"), "no public key of this algorithm"),
        (pair("k", EdDSA, "p256"), "no public key of this algorithm"),
        (pair("k", RS256, "absent"), "cannot read"),
        (KeyConfig { public_key_file: None, ..pair("k", RS256, "rsa") }, "publicKeyFile"),
        (KeyConfig { secret: None, ..secret_key("k", SECRET) }, "secretFile"),
        (
            KeyConfig { public_key_file: Some(key_file("rsa.pem")), ..pair("k", RS256, "rsa") },
            "holds no public key",
        ),
        (
            KeyConfig {
                private_key_file: Some(key_file("p256.pem")),
                ..pair("k", EdDSA, "ed25519")
            },
            "no private key",
        ),
    ] {
        let found = why(vec![key]);
        assert!(found.contains(words), "{words:?} is not in {found:?}");
    }
    let twice = why(vec![secret_key("k", SECRET), secret_key("k", OTHER)]);
    assert!(twice.contains("two keys"), "{twice}");
}

#[tokio::test]
async fn signed_tokens_are_accepted() {
    let with_private = |id, algorithm, name: &str| KeyConfig {
        private_key_file: Some(key_file(&format!("{name}.pem"))),
        ..pair(id, algorithm, name)
    };
    for key in [
        secret_key("k", SECRET),
        with_private("k", RS256, "rsa"),
        with_private("k", ES256, "p256"),
        with_private("k", EdDSA, "ed25519"),
    ] {
        let name = key.algorithm;
        let config = with_keys(vec![key]);
        let signing = SigningKey::of(&config, None).unwrap().unwrap();
        let new = NewToken {
            subject: "ada".to_owned(),
            grant: "default".parse().unwrap(),
            roles: ["viewer".parse().unwrap()].into_iter().collect(),
            expires_in: std::time::Duration::from_secs(60),
            key: None,
        };
        let (token, _) = signing.sign(new, clock().now());
        assert_eq!(read_with(&router_with(&config), &token).await.status, 200, "{name}");
    }
    assert!(SigningKey::of(&with_keys(vec![pair("k", RS256, "rsa")]), None).unwrap().is_none());
    assert!(SigningKey::of(&config(), Some("absent")).unwrap().is_none());
}
