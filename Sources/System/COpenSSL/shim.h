// The plain SHA-256 is marked as deprecated in OpenSSL 3, for what stands in its place, which allocates for each message.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Swift sees none of the macros below.

// No TLS before 1.2, no renegotiation, no compression. Buffers are freed while a session is idle.
static inline int carillon_tls_rules(SSL_CTX *context) {
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static inline int carillon_tls_only(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version) == 1 && SSL_CTX_set_max_proto_version(context, version) == 1;
}

static inline void carillon_tls_cache(SSL_CTX *context, int mode) { SSL_CTX_set_session_cache_mode(context, mode); }

static inline int carillon_tls_add_chain(SSL_CTX *context, X509 *certificate) { return SSL_CTX_add1_chain_cert(context, certificate) == 1; }

static inline int carillon_tls_server_name(SSL *session, const char *name) { return SSL_set_tlsext_host_name(session, name) == 1; }

static inline int carillon_tls_ticket_code(EVP_MAC_CTX *code, const unsigned char *key, size_t count) {
  OSSL_PARAM settings[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, count),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
      OSSL_PARAM_construct_end(),
  };
  return EVP_MAC_CTX_set_params(code, settings);
}

static inline void carillon_tls_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
