/// The layout of a record of `notifications.journal`: how the transform workers judged many requests of one partition.
///
/// A record lies in the partition with the same number as the requests that it tells of, and has no key. Its headers:
///
/// | header | value |
/// |---|---|
/// | `layout` | `1` |
/// | `worker` | the worker that judged |
/// | `incarnation` | how often the requests topic had been deleted and made again, as decimal digits |
///
/// Its value begins with when it was begun (milliseconds since 1970), the first entry's offset and the first entry's timestamp, and then has
/// entries until its end. Numbers are varints (LEB128), `±` marks zigzag ones; offsets and timestamps of entries are the difference to the
/// entry before. An entry is one of:
///
/// | entry | bytes |
/// |---|---|
/// | a run of requests at consecutive offsets that were kept, with nothing more to say | `0F`, ± offset, how many (one byte), then ± timestamp of each |
/// | any other request | verdict and flags (one byte), ± offset, ± timestamp, then the parts that the flags name |
/// | a page of a person's devices | `80`, or `81` for the last page; ± offset, ± timestamp, how many devices; per device the token's bytes behind their count, verdict and flags, the parts; with the last page, how many devices there are in all and the XOR of their hashes (8) |
/// | the service extensions that a request has passed, before its verdict | `82`, ± offset, ± timestamp, how many (one byte), per extension its state (one byte), its name behind its length (one byte), how long it took in milliseconds |
/// | consecutive offsets whose records nobody could read: the dead letters have a letter without them | `83`, ± the first offset, ± when they were passed over, in place of a timestamp, how many offsets |
///
/// | flag | part |
/// |---|---|
/// | `10` | revision, where the request does not imply it: ± difference of its timestamp to the entry's, partition (with the incarnation above its 16 bits), offset |
/// | `20` | what was superseded, or what supersedes: a revision in the same form, and its apns-id (16) |
///
/// Verdicts are the bytes of ``Outcome/journalByte``.
public enum JournalLayout {
  /// The number of this layout.
  public static let version = "1"
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
