//! Hashing and verification of passwords with Argon2id, on at most as many threads as there are
//! cores.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{Error, PasswordHasher, PasswordVerifier},
};
use assay_proto::Fault;
use aws_lc_rs::rand;
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Parameters as recommended by OWASP: 19 MiB of memory, two passes, one lane.
const MEMORY_IN_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Maximum number of passwords that wait for a core; the last one waits for about a second.
const QUEUE_LENGTH: usize = 64;

/// Delay after which clients should retry if the queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Characters of generated passwords, five bits each, without similar ones.
const READABLE: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Hashes and verifies passwords.
#[derive(Clone)]
pub(crate) struct Passwords(Arc<Inner>);

struct Inner {
    queue: Arc<Semaphore>,
    cores: Arc<Semaphore>,
    argon2: Argon2<'static>,
    /// Prefix of hashes with the current parameters.
    current_prefix: String,
    /// Hash to verify passwords of unknown accounts against: salt and hash are zeros, so that no
    /// password has it.
    dummy_hash: String,
}

/// The result of a verification.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Wrong,
    Right,
    /// Right, but the stored hash has outdated parameters; this is a new one.
    Outdated(String),
}

/// A place in the queue, for hashing or verifying one password.
pub(crate) struct Slot {
    passwords: Arc<Inner>,
    permit: OwnedSemaphorePermit,
    /// The core, once it is its turn.
    core: Option<OwnedSemaphorePermit>,
}

impl Passwords {
    pub(crate) fn new() -> Result<Self, Fault> {
        Self::with_size(available_parallelism().map_or(1, Into::into), QUEUE_LENGTH)
    }

    fn with_size(cores: usize, queue_length: usize) -> Result<Self, Fault> {
        let params = Params::new(MEMORY_IN_KIB, PASSES, LANES, None).map_err(Fault::internal)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let current_prefix = format!("$argon2id$v=19$m={MEMORY_IN_KIB},t={PASSES},p={LANES}$");
        let (salt, hash) = ("A".repeat(22), "A".repeat(43));
        Ok(Self(Arc::new(Inner {
            queue: Arc::new(Semaphore::new(cores + queue_length)),
            cores: Arc::new(Semaphore::new(cores)),
            dummy_hash: format!("{current_prefix}{salt}${hash}"),
            current_prefix,
            argon2,
        })))
    }

    /// Takes a place in the queue. Fails immediately if the queue is full.
    pub(crate) fn acquire(&self) -> Result<Slot, Fault> {
        let permit =
            self.0.queue.clone().try_acquire_owned().map_err(|_| Fault::Busy(RETRY_AFTER))?;
        Ok(Slot { passwords: self.0.clone(), permit, core: None })
    }
}

impl Inner {
    fn hash(&self, password: &SecretString) -> Result<String, Fault> {
        let hash = self.argon2.hash_password(password.expose_secret().as_bytes());
        Ok(hash.map_err(Fault::internal)?.to_string())
    }
}

impl Slot {
    /// Waits for its turn. Then at most as many others are being computed as there are cores.
    pub(crate) async fn turn(mut self) -> Result<Self, Fault> {
        if self.core.is_none() {
            let core = self.passwords.cores.clone().acquire_owned().await;
            self.core = Some(core.map_err(Fault::internal)?);
        }
        Ok(self)
    }

    /// Verifies a password. Without a hash the password is wrong, after the same time.
    pub(crate) async fn verify(
        self,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<Verdict, Fault> {
        self.compute(move |passwords| {
            let stored = hash.as_deref().unwrap_or(&passwords.dummy_hash);
            match passwords.argon2.verify_password(password.expose_secret().as_bytes(), stored) {
                Ok(()) if hash.is_none() => Ok(Verdict::Wrong),
                Ok(()) if stored.starts_with(&passwords.current_prefix) => Ok(Verdict::Right),
                Ok(()) => passwords.hash(&password).map(Verdict::Outdated),
                Err(Error::PasswordInvalid) => Ok(Verdict::Wrong),
                Err(error) => Err(Fault::internal(error)),
            }
        })
        .await
    }

    /// Hashes a new password, as a PHC string.
    pub(crate) async fn hash(self, password: SecretString) -> Result<String, Fault> {
        self.compute(move |passwords| passwords.hash(&password)).await
    }

    /// Computes on a thread of its own. If the caller is cancelled, the core stays in use until the
    /// computation ends.
    async fn compute<T: Send + 'static>(
        self,
        work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let Self { passwords, permit, core } = self.turn().await?;
        let computed = spawn_blocking(move || {
            let _until_done = (permit, core);
            work(&passwords)
        });
        computed.await.map_err(Fault::internal)?
    }
}

/// Generates a password of 120 bits that is easy to read and type.
pub(crate) fn generate() -> Result<SecretString, Fault> {
    let mut bytes = [0; 24];
    rand::fill(&mut bytes).map_err(|_| Fault::internal("no source of random numbers"))?;
    let characters = bytes.map(|byte| char::from(READABLE[usize::from(byte % 32)]));
    let words: Vec<String> = characters.chunks(6).map(|word| word.iter().collect()).collect();
    Ok(words.join("-").into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn only_the_hashed_password_is_right() {
        let passwords = Passwords::with_size(1, 0).unwrap();
        let hash = passwords.acquire().unwrap().hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        for (password, verdict) in [
            ("correct horse", Verdict::Right),
            ("Correct horse", Verdict::Wrong),
            ("", Verdict::Wrong),
        ] {
            let slot = passwords.acquire().unwrap();
            assert_eq!(slot.verify(password.into(), Some(hash.clone())).await.unwrap(), verdict);
        }
    }

    #[tokio::test]
    async fn a_hash_with_outdated_parameters_is_replaced() {
        let passwords = Passwords::with_size(1, 0).unwrap();
        let params = Params::new(1024, 1, 1, None).unwrap();
        let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let old = cheap.hash_password(b"correct horse").unwrap().to_string();

        let verify = async |password: &str, hash: &str| {
            passwords
                .acquire()
                .unwrap()
                .verify(password.into(), Some(hash.to_owned()))
                .await
                .unwrap()
        };
        assert_eq!(verify("wrong", &old).await, Verdict::Wrong);
        let Verdict::Outdated(new) = verify("correct horse", &old).await else {
            panic!("the hash was not replaced");
        };
        assert_eq!(verify("correct horse", &new).await, Verdict::Right);
    }

    #[tokio::test]
    async fn a_password_of_an_unknown_account_is_wrong() {
        let passwords = Passwords::with_size(1, 0).unwrap();
        let slot = passwords.acquire().unwrap();
        assert_eq!(slot.verify("anything".into(), None).await.unwrap(), Verdict::Wrong);
    }

    #[tokio::test]
    async fn a_full_queue_rejects_passwords_until_a_slot_is_released() {
        let passwords = Passwords::with_size(1, 1).unwrap();
        let (first, second) = (passwords.acquire().unwrap(), passwords.acquire().unwrap());
        assert!(matches!(passwords.acquire(), Err(Fault::Busy(_))));
        drop(second);
        let second = passwords.acquire().unwrap();
        assert!(matches!(passwords.acquire(), Err(Fault::Busy(_))));
        for slot in [first, second] {
            slot.verify("anything".into(), None).await.unwrap();
        }
        assert!(passwords.acquire().is_ok());
    }

    #[test]
    fn generated_passwords_are_long_and_unique() {
        let generated: HashSet<String> =
            (0..100).map(|_| generate().unwrap().expose_secret().to_owned()).collect();
        assert_eq!(generated.len(), 100);
        assert!(generated.iter().all(|password| password.len() == 27));
    }
}
