//! One certificate: what of it is asked for. Its parser is the crate x509-cert, which takes version 1 as well.

use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier};
use der::oid::AssociatedOid;
use der::{Decode, Encode, Sequence};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};

/// A certificate as it is signed: its parts as they came, so that a signature is over these very bytes.
#[derive(Sequence)]
struct Signed<'a> {
    contents: AnyRef<'a>,
    algorithm: AnyRef<'a>,
    signature: BitStringRef<'a>,
}

/// The key within a certificate.
#[derive(Sequence)]
struct PublicKey<'a> {
    algorithm: AnyRef<'a>,
    key: BitStringRef<'a>,
}

/// An algorithm, with whatever it takes.
#[derive(Sequence)]
struct Algorithm<'a> {
    oid: ObjectIdentifier,
    #[asn1(optional = "true")]
    parameters: Option<AnyRef<'a>>,
}

/// RSASSA-PSS-params of RFC 4055.
#[derive(Sequence)]
struct PssParameters<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    hash: Option<Algorithm<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    mask: Option<AnyRef<'a>>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", optional = "true")]
    salt: Option<AnyRef<'a>>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    trailer: Option<AnyRef<'a>>,
}

/// A certificate.
pub struct Certificate {
    /// As it came.
    pub der: Vec<u8>,
    parsed: CertificateInner<Raw>,
    /// The bytes that are signed.
    pub contents: Vec<u8>,
    /// The AlgorithmIdentifier of the signature, without its header: as rustls names algorithms.
    pub signature_algorithm: Vec<u8>,
    pub signature: Vec<u8>,
    /// The AlgorithmIdentifier of the key, without its header.
    pub key_algorithm: Vec<u8>,
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Certificate({})", self.fields().subject())
    }
}

impl Certificate {
    /// Reads a certificate in DER; the error is the reason why it is none.
    pub fn parse(der: &[u8]) -> Result<Self, der::Error> {
        let parsed = CertificateInner::<Raw>::from_der(der)?;
        let signed = Signed::from_der(der)?;
        let spki = parsed.tbs_certificate().subject_public_key_info().to_der()?;
        let key = PublicKey::from_der(&spki)?;
        Ok(Self {
            der: der.to_owned(),
            contents: signed.contents.to_der()?,
            signature_algorithm: signed.algorithm.value().to_owned(),
            signature: octets(signed.signature)?,
            key_algorithm: key.algorithm.value().to_owned(),
            key: octets(key.key)?,
            parsed,
        })
    }

    /// Everything that is signed.
    pub fn fields(&self) -> &TbsCertificateInner<Raw> {
        self.parsed.tbs_certificate()
    }

    /// An extension, where the certificate has it.
    ///
    /// # Errors
    /// It cannot be read, or is there more than once.
    pub fn extension<'a, T: Decode<'a, Error = der::Error> + AssociatedOid>(
        &'a self,
    ) -> Result<Option<T>, der::Error> {
        let mut found = self.extensions().iter().filter(|extension| extension.extn_id == T::OID);
        let Some(extension) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(der::ErrorKind::Failed.into());
        }
        T::from_der(extension.extn_value.as_bytes()).map(Some)
    }

    /// All extensions.
    pub fn extensions(&self) -> &[x509_cert::ext::Extension] {
        self.fields().extensions().map_or(&[], Vec::as_slice)
    }

    /// Whether issuer and subject are the same: the certificate may have signed itself.
    pub fn is_self_issued(&self) -> bool {
        self.fields().issuer() == self.fields().subject()
    }

    /// The key with its algorithm, in DER.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn public_key(&self) -> Result<SubjectPublicKeyInfoDer<'static>, der::Error> {
        Ok(self.fields().subject_public_key_info().to_der()?.into())
    }

    /// The hash `tls-server-end-point` of RFC 5929, section 4.1: by the hash of the signature algorithm, and by SHA-256
    /// instead of MD5 and SHA-1. `None` for algorithms that have none of their own, as Ed25519, and for unknown ones.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        let algorithm = self.parsed.signature_algorithm().to_der().ok()?;
        let hash = match hash_of_signature(&Algorithm::from_der(&algorithm).ok()?)? {
            Hash::Sha224 => Sha224::digest(&self.der).to_vec(),
            Hash::Sha256 => Sha256::digest(&self.der).to_vec(),
            Hash::Sha384 => Sha384::digest(&self.der).to_vec(),
            Hash::Sha512 => Sha512::digest(&self.der).to_vec(),
        };
        Some(hash)
    }
}

/// A string of bits that has to be one of octets, as all keys and signatures are.
fn octets(bits: BitStringRef<'_>) -> Result<Vec<u8>, der::Error> {
    bits.as_bytes().map(<[u8]>::to_owned).ok_or_else(|| der::ErrorKind::Failed.into())
}

/// The hashes of channel binding.
enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// The hash for a certificate that is signed so (RFC 3279, 4055, 5758).
fn hash_of_signature(algorithm: &Algorithm<'_>) -> Option<Hash> {
    Some(match algorithm.oid.to_string().as_str() {
        // md5, sha1 and sha256WithRSAEncryption, ecdsa-with-SHA1 and SHA256
        "1.2.840.113549.1.1.4" | "1.2.840.113549.1.1.5" | "1.2.840.113549.1.1.11" => Hash::Sha256,
        "1.2.840.10045.4.1" | "1.2.840.10045.4.3.2" => Hash::Sha256,
        // sha384, sha512 and sha224WithRSAEncryption
        "1.2.840.113549.1.1.12" => Hash::Sha384,
        "1.2.840.113549.1.1.13" => Hash::Sha512,
        "1.2.840.113549.1.1.14" => Hash::Sha224,
        // ecdsa-with-SHA224, SHA384 and SHA512
        "1.2.840.10045.4.3.1" => Hash::Sha224,
        "1.2.840.10045.4.3.3" => Hash::Sha384,
        "1.2.840.10045.4.3.4" => Hash::Sha512,
        // RSASSA-PSS, of which SHA-1 is the default
        "1.2.840.113549.1.1.10" => match algorithm.parameters?.decode_as::<PssParameters<'_>>().ok()?.hash {
            None => Hash::Sha256,
            Some(hash) => named_hash(hash.oid)?,
        },
        _ => return None,
    })
}

fn named_hash(oid: ObjectIdentifier) -> Option<Hash> {
    Some(match oid.to_string().as_str() {
        // md5, sha1, sha256
        "1.2.840.113549.2.5" | "1.3.14.3.2.26" | "2.16.840.1.101.3.4.2.1" => Hash::Sha256,
        "2.16.840.1.101.3.4.2.2" => Hash::Sha384,
        "2.16.840.1.101.3.4.2.3" => Hash::Sha512,
        "2.16.840.1.101.3.4.2.4" => Hash::Sha224,
        _ => return None,
    })
}
