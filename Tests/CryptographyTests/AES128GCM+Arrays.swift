import Cryptography

extension AES128GCM {
  /// Seals a message, in memory of its own.
  func seal(_ plaintext: [UInt8], nonce: [UInt8], authenticating additional: [UInt8] = []) -> [UInt8] {
    var sealed = [UInt8](repeating: 0, count: plaintext.count + Self.tagBytes)
    sealed.withUnsafeMutableBytes { sealed in
      plaintext.withUnsafeBytes { plaintext in
        nonce.withUnsafeBytes { nonce in
          additional.withUnsafeBytes { seal(plaintext, nonce: nonce, authenticating: $0, into: sealed) }
        }
      }
    }
    return sealed
  }

  /// The plaintext of a sealed message, in memory of its own; nil when it is not authentic.
  func open(_ sealed: [UInt8], nonce: [UInt8], authenticating additional: [UInt8] = []) -> [UInt8]? {
    var plaintext = [UInt8](repeating: 0, count: max(0, sealed.count - Self.tagBytes))
    let isAuthentic = plaintext.withUnsafeMutableBytes { plaintext in
      sealed.withUnsafeBytes { sealed in
        nonce.withUnsafeBytes { nonce in
          additional.withUnsafeBytes { open(sealed, nonce: nonce, authenticating: $0, into: plaintext) }
        }
      }
    }
    return isAuthentic ? plaintext : nil
  }
}
