/// Another revision that a judgement names: the one that was superseded, or the one that supersedes.
public struct JournalReference: Sendable, Hashable {
  /// The other revision.
  public var revision: Revision
  /// Its apns-id.
  public var id: NotificationID

  /// A reference to one revision.
  public init(revision: Revision, id: NotificationID) {
    (self.revision, self.id) = (revision, id)
  }
}

/// The verdict on a request at one device.
public struct JournalJudgement: Sendable, Hashable {
  /// The verdict: one that the journal has a byte for.
  public var verdict: Outcome
  /// The revision as it was kept: that of the request, unless it was raised or is that of an earlier record (a replay).
  public var revision: Revision
  /// For what was kept, the revision that it superseded in the mailbox; for what is stale, the one that supersedes it.
  public var other: JournalReference?

  /// A judgement from its parts.
  public init(_ verdict: Outcome, revision: Revision, other: JournalReference? = nil) {
    (self.verdict, self.revision, self.other) = (verdict, revision, other)
  }
}

/// What an entry of the journal says of one record of `requests`.
public struct JournalEntry: Sendable, Hashable {
  /// What a page of a person's devices says.
  public struct Page: Sendable, Hashable {
    /// One device and the verdict on the request there.
    public struct Device: Sendable, Hashable {
      /// The device.
      public var token: DeviceToken
      /// The verdict.
      public var judgement: JournalJudgement

      /// A device of a page.
      public init(_ token: DeviceToken, _ judgement: JournalJudgement) { (self.token, self.judgement) = (token, judgement) }
    }

    /// The page's devices.
    public var devices: [Device]
    /// With the last page: how many devices all pages have together, and the XOR of their tokens' stable hashes.
    public var closing: Closing?

    /// A page of these devices.
    public init(devices: [Device], closing: Closing? = nil) { (self.devices, self.closing) = (devices, closing) }
  }

  /// What the last page of a request says of all its pages, so that a crash between two of them shows.
  public struct Closing: Sendable, Hashable {
    /// How many devices there are.
    public var devices: Int
    /// The XOR of the stable hashes of their tokens.
    public var checksum: UInt64

    /// The sum of these devices.
    public init(devices: Int = 0, checksum: UInt64 = 0) { (self.devices, self.checksum) = (devices, checksum) }

    /// Counts one more device.
    public mutating func add(_ token: UnsafeRawBufferPointer) {
      devices += 1
      checksum ^= DeviceToken.hash(token)
    }
  }

  /// A service extension that a request has passed.
  public struct PassedExtension: Sendable, Hashable {
    /// Its name.
    public var name: String
    /// What became of the request there.
    public var state: ExtensionState
    /// How long it took, in milliseconds.
    public var milliseconds: Int64

    /// An extension's part.
    public init(name: String, state: ExtensionState, milliseconds: Int64) {
      (self.name, self.state, self.milliseconds) = (name, state, milliseconds)
    }

    /// Appends it in the form of a journal's entry.
    public func append(to buffer: inout ByteBuffer) {
      ExtensionStates.append(state, name: name, to: &buffer)
      buffer.append(varint: UInt64(clamping: milliseconds))
    }
  }

  /// What was judged.
  public enum Content: Sendable, Hashable {
    /// The whole request: it is for one device, or no device was looked for.
    case request(JournalJudgement)
    /// Some of the person's devices.
    case page(Page)
    /// Nothing yet: which service extensions the request has passed before.
    case extensions([PassedExtension])
    /// Nothing can be told of so many consecutive offsets, from the entry's on: their records could not be read, and were passed over.
    /// The timestamp is that of the moment.
    case unreadable(Int64)
  }

  /// The record's offset in its partition of `requests`.
  public var offset: Int64
  /// The record's timestamp, in milliseconds since 1970: where the record at that offset has another one, the entry tells of a topic that
  /// has been deleted and made again, and counts for nothing.
  public var timestamp: Int64
  /// The verdict.
  public var content: Content

  /// An entry of its parts.
  public init(offset: Int64, timestamp: Int64, content: Content) {
    (self.offset, self.timestamp, self.content) = (offset, timestamp, content)
  }
}
