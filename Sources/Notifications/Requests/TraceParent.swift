/// The `traceparent` header of W3C Trace Context.
public enum TraceParent {
  /// The number of characters that are passed on.
  public static var textCount: Int { 55 }

  /// Returns the part that is passed on; empty if the header is malformed.
  ///
  /// W3C Trace Context says to treat a malformed header as absent. The form is `vv-(32 hex)-(16 hex)-(2 hex)` in lower case. The ids are
  /// not all zero, and the version is not `ff`. The additions of a version above `00` are dropped.
  public static func carried(_ header: UnsafeRawBufferPointer?) -> UnsafeRawBufferPointer {
    guard let header, header.count >= textCount else { return .empty }
    let isFirstVersion = header.starts(with: "00")
    guard header.count == textCount || (!isFirstVersion && header[textCount] == UInt8(ascii: "-")), !header.starts(with: "ff") else {
      return .empty
    }
    var isZero = true
    for index in 0..<textCount {
      if index == 2 || index == 35 || index == 52 {
        guard header[index] == UInt8(ascii: "-") else { return .empty }
        // The version and the flags may be zero, but not the two ids between the hyphens.
        guard index == 2 || !isZero else { return .empty }
        isZero = true
        continue
      }
      guard let digit = Hexadecimal.lowerCaseValue(header[index]) else { return .empty }
      if digit != 0 { isZero = false }
    }
    return UnsafeRawBufferPointer(rebasing: header[0..<textCount])
  }

  /// Returns the ids of the trace and of its sender's span, as hexadecimal digits.
  ///
  /// It returns nil if nothing is passed on.
  public static func identifiers(_ carried: UnsafeRawBufferPointer) -> (trace: String, span: String)? {
    guard carried.count == textCount else { return nil }
    return (String(decoding: carried[3..<35], as: UTF8.self), String(decoding: carried[36..<52], as: UTF8.self))
  }
}
