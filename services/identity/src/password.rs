//! Passwords: hashed and verified with Argon2id, on as many cores as there are and no more.

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

/// What OWASP recommends: 19 MiB of memory, two passes, one lane.
const MEMORY_IN_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// How many may wait for a core; with more, the last one would wait for over a second.
const WAITING: usize = 64;

/// When those who found the queue full may come again.
const PAUSE: Duration = Duration::from_secs(1);

/// Five bits for each; without those that look alike.
const READABLE: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Hashes and verifies passwords.
#[derive(Clone)]
pub(crate) struct Passwords(Arc<Inner>);

struct Inner {
    places: Arc<Semaphore>,
    cores: Arc<Semaphore>,
    argon2: Argon2<'static>,
    /// What hashes begin with that are made as they are made today.
    current: String,
    /// What the passwords of accounts that do not exist are compared with.
    nobodys: String,
}

/// Whether a password is right.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Wrong,
    Right,
    /// Right, and this is a hash as they are made today; the stored one was made with less effort.
    Outdated(String),
}

/// A place in the queue, for one password.
pub(crate) struct Turn {
    passwords: Arc<Inner>,
    place: OwnedSemaphorePermit,
}

impl Passwords {
    pub(crate) fn new() -> Result<Self, Fault> {
        Self::sized(available_parallelism().map_or(1, Into::into), WAITING)
    }

    fn sized(cores: usize, waiting: usize) -> Result<Self, Fault> {
        let params = Params::new(MEMORY_IN_KIB, PASSES, LANES, None).map_err(Fault::internal)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let nobodys = argon2.hash_password(generate()?.expose_secret().as_bytes());
        Ok(Self(Arc::new(Inner {
            places: Arc::new(Semaphore::new(cores + waiting)),
            cores: Arc::new(Semaphore::new(cores)),
            current: format!("$argon2id$v=19$m={MEMORY_IN_KIB},t={PASSES},p={LANES}$"),
            nobodys: nobodys.map_err(Fault::internal)?.to_string(),
            argon2,
        })))
    }

    /// Queues up; refused at once if the queue is full.
    pub(crate) fn turn(&self) -> Result<Turn, Fault> {
        let place = self.0.places.clone().try_acquire_owned().map_err(|_| Fault::Busy(PAUSE))?;
        Ok(Turn { passwords: self.0.clone(), place })
    }
}

impl Inner {
    fn hash(&self, password: &SecretString) -> Result<String, Fault> {
        let hash = self.argon2.hash_password(password.expose_secret().as_bytes());
        Ok(hash.map_err(Fault::internal)?.to_string())
    }
}

impl Turn {
    /// Whether the hash is the password's. Without a hash it is not, which takes as long to say.
    pub(crate) async fn verify(
        self,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<Verdict, Fault> {
        self.compute(move |passwords| {
            let stored = hash.as_deref().unwrap_or(&passwords.nobodys);
            match passwords.argon2.verify_password(password.expose_secret().as_bytes(), stored) {
                Ok(()) if hash.is_none() => Ok(Verdict::Wrong),
                Ok(()) if stored.starts_with(&passwords.current) => Ok(Verdict::Right),
                Ok(()) => passwords.hash(&password).map(Verdict::Outdated),
                Err(Error::PasswordInvalid) => Ok(Verdict::Wrong),
                Err(error) => Err(Fault::internal(error)),
            }
        })
        .await
    }

    /// The hash of a new password, as a PHC string.
    pub(crate) async fn hash(self, password: SecretString) -> Result<String, Fault> {
        self.compute(move |passwords| passwords.hash(&password)).await
    }

    /// Computes on a core of its own. A caller who leaves meanwhile does not free the core.
    async fn compute<T: Send + 'static>(
        self,
        work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let core = self.passwords.cores.clone().acquire_owned().await.map_err(Fault::internal)?;
        let computed = spawn_blocking(move || {
            let _until_done = (self.place, core);
            work(&self.passwords)
        });
        computed.await.map_err(Fault::internal)?
    }
}

/// Makes a password of 120 bits that can be read out and typed.
pub(crate) fn generate() -> Result<SecretString, Fault> {
    let mut bytes = [0; 24];
    rand::fill(&mut bytes).map_err(|_| Fault::internal("no random numbers"))?;
    let characters = bytes.map(|byte| char::from(READABLE[usize::from(byte % 32)]));
    let words: Vec<String> = characters.chunks(6).map(|word| word.iter().collect()).collect();
    Ok(words.join("-").into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn a_password_is_the_one_that_was_hashed() {
        let passwords = Passwords::sized(1, 0).unwrap();
        let hash = passwords.turn().unwrap().hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        for (password, verdict) in [
            ("correct horse", Verdict::Right),
            ("Correct horse", Verdict::Wrong),
            ("", Verdict::Wrong),
        ] {
            let turn = passwords.turn().unwrap();
            assert_eq!(turn.verify(password.into(), Some(hash.clone())).await.unwrap(), verdict);
        }
    }

    #[tokio::test]
    async fn a_hash_of_less_effort_is_made_anew() {
        let passwords = Passwords::sized(1, 0).unwrap();
        let params = Params::new(1024, 1, 1, None).unwrap();
        let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let old = cheap.hash_password(b"correct horse").unwrap().to_string();

        let verify = async |password: &str, hash: &str| {
            passwords.turn().unwrap().verify(password.into(), Some(hash.to_owned())).await.unwrap()
        };
        assert_eq!(verify("wrong", &old).await, Verdict::Wrong);
        let Verdict::Outdated(new) = verify("correct horse", &old).await else {
            panic!("the hash was kept");
        };
        assert_eq!(verify("correct horse", &new).await, Verdict::Right);
    }

    #[tokio::test]
    async fn nobodys_password_is_never_right() {
        let passwords = Passwords::sized(1, 0).unwrap();
        let turn = passwords.turn().unwrap();
        assert_eq!(turn.verify("anything".into(), None).await.unwrap(), Verdict::Wrong);
    }

    #[tokio::test]
    async fn a_full_queue_is_refused_until_somebody_leaves() {
        let passwords = Passwords::sized(1, 1).unwrap();
        let (first, second) = (passwords.turn().unwrap(), passwords.turn().unwrap());
        assert!(matches!(passwords.turn(), Err(Fault::Busy(_))));
        drop(second);
        let second = passwords.turn().unwrap();
        assert!(matches!(passwords.turn(), Err(Fault::Busy(_))));
        for turn in [first, second] {
            turn.verify("anything".into(), None).await.unwrap();
        }
        assert!(passwords.turn().is_ok());
    }

    #[test]
    fn made_passwords_are_long_and_differ() {
        let made: HashSet<String> =
            (0..100).map(|_| generate().unwrap().expose_secret().to_owned()).collect();
        assert_eq!(made.len(), 100);
        assert!(made.iter().all(|password| password.len() == 27));
    }
}
