/// The `traceparent` header of W3C Trace Context.
public enum TraceParent {
  /// How many characters of it are carried on.
  public static var textCount: Int { 55 }

  /// The part that is carried on, or nothing when it is malformed: then the recommendation says to go on as if it were absent.
  ///
  /// `vv-(32 hex)-(16 hex)-(2 hex)` in lower case, ids not all zero, version not `ff`; what a version above `00` adds is left out.
  public static func carried(_ header: UnsafeRawBufferPointer?) -> UnsafeRawBufferPointer {
    guard let header, header.count >= textCount else { return .none }
    let isFirstVersion = header.starts(with: "00")
    guard header.count == textCount || (!isFirstVersion && header[textCount] == UInt8(ascii: "-")), !header.starts(with: "ff") else {
      return .none
    }
    var isZero = true
    for index in 0..<textCount {
      if index == 2 || index == 35 || index == 52 {
        guard header[index] == UInt8(ascii: "-") else { return .none }
        // The version and the flags may be zero, the two ids between the hyphens not.
        guard index == 2 || !isZero else { return .none }
        isZero = true
        continue
      }
      guard let digit = Hexadecimal.lowerCaseValue(header[index]) else { return .none }
      if digit != 0 { isZero = false }
    }
    return UnsafeRawBufferPointer(rebasing: header[0..<textCount])
  }

  /// The ids of the trace and of its sender's span, in hexadecimal digits, of what is carried on; nil of nothing.
  public static func identifiers(_ carried: UnsafeRawBufferPointer) -> (trace: String, span: String)? {
    guard carried.count == textCount else { return nil }
    return (String(decoding: carried[3..<35], as: UTF8.self), String(decoding: carried[36..<52], as: UTF8.self))
  }
}
