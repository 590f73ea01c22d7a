/// The layout of a record of `notifications.journal`: the judgements of many requests of a partition.
///
/// A record lies in the partition with the number of the requests' partition, and has no key. Its headers:
///
/// | header | value |
/// |---|---|
/// | `layout` | `1` |
/// | `worker` | the worker that judged |
/// | `incarnation` | how often the requests topic was made again, in decimal digits |
///
/// Its value begins with the time of its first entry (milliseconds since 1970), and that entry's offset and timestamp. Then its entries
/// follow. Numbers are varints (LEB128), and `±` marks zigzag ones. The offset and timestamp of an entry are differences to the previous
/// entry. An entry is one of:
///
/// | entry | bytes |
/// |---|---|
/// | a run of requests at consecutive offsets that were all kept | `0F`, ± offset, count (one byte), then ± timestamp of each |
/// | any other request | verdict and flags (one byte), ± offset, ± timestamp, then the parts that the flags name |
/// | a page of a person's devices | `80`, or `81` for the last page; ± offset, ± timestamp, number of devices; per device the length and bytes of the token, verdict and flags, the parts; in the last page the total number of devices and the XOR of their hashes (8) |
/// | the service extensions that a request passed, before its verdict | `82`, ± offset, ± timestamp, count (one byte), per extension its state (one byte), the length (one byte) and bytes of its name, its duration in milliseconds |
/// | consecutive unreadable offsets, which have one dead letter without their records | `83`, ± first offset, ± time at which they were skipped, number of offsets |
///
/// | flag | part |
/// |---|---|
/// | `10` | revision, unless the request implies it: ± difference of its timestamp to the entry's, partition (with the incarnation above its 16 bits), offset |
/// | `20` | the superseded or the newer request: a revision in the same form, and its apns-id (16) |
///
/// Verdicts are the bytes of ``Outcome/journalByte``.
public enum JournalLayout {
  /// The number of this layout.
  public static let version = "\(Layout.journal.newest)"
  /// The names of the headers.
  public enum Header {
    /// The layout's number.
    public static let layout: StaticString = "layout"
    /// The worker.
    public static let worker: StaticString = "worker"
    /// The incarnation of the requests topic.
    public static let incarnation: StaticString = "incarnation"
  }

  static let run: UInt8 = 0x0F
  static let page: UInt8 = 0x80
  static let lastPage: UInt8 = 0x81
  static let extensions: UInt8 = 0x82
  static let unreadable: UInt8 = 0x83
  static let verdictMask: UInt8 = 0x0F
  static let revisionFlag: UInt8 = 0x10
  static let otherFlag: UInt8 = 0x20
  static let longestRun: UInt8 = 255
}
