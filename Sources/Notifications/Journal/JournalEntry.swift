/// Another request that a judgement names: the superseded one, or the newer one.
public struct JournalReference: Sendable, Hashable {
  /// The other request's revision.
  public var revision: Revision
  /// The other request's apns-id.
  public var id: NotificationID

  /// Creates a reference from its parts.
  public init(revision: Revision, id: NotificationID) {
    (self.revision, self.id) = (revision, id)
  }
}

/// The verdict on a request at one device.
public struct JournalJudgement: Sendable, Hashable {
  /// The verdict, which has a byte in the journal.
  public var verdict: Outcome
  /// The revision that was kept.
  ///
  /// It is the request's own unless it was raised, or is that of an earlier record (a replay).
  public var revision: Revision
  /// The superseded revision of a kept request, or the newer one of a stale request.
  public var other: JournalReference?

  /// Creates a judgement from its parts.
  public init(_ verdict: Outcome, revision: Revision, other: JournalReference? = nil) {
    (self.verdict, self.revision, self.other) = (verdict, revision, other)
  }
}

/// An entry of the journal about one record of `requests`.
public struct JournalEntry: Sendable, Hashable {
  /// A page of a person's devices.
  public struct Page: Sendable, Hashable {
    /// A device and the verdict there.
    public struct Device: Sendable, Hashable {
      /// The device.
      public var token: DeviceToken
      /// The verdict.
      public var judgement: JournalJudgement

      /// Creates a device of a page.
      public init(_ token: DeviceToken, _ judgement: JournalJudgement) { (self.token, self.judgement) = (token, judgement) }
    }

    /// The page's devices.
    public var devices: [Device]
    /// The sum of all pages; only in the last page.
    public var closing: Closing?

    /// Creates a page of these devices.
    public init(devices: [Device], closing: Closing? = nil) { (self.devices, self.closing) = (devices, closing) }
  }

  /// The sum of a request's pages. It reveals a crash between two pages.
  public struct Closing: Sendable, Hashable {
    /// The number of devices.
    public var devices: Int
    /// The XOR of the stable hashes of their tokens.
    public var checksum: UInt64

    /// Creates the sum of these devices.
    public init(devices: Int = 0, checksum: UInt64 = 0) { (self.devices, self.checksum) = (devices, checksum) }

    /// Counts one more device.
    public mutating func add(_ token: UnsafeRawBufferPointer) {
      devices += 1
      checksum ^= DeviceToken.hash(token)
    }
  }

  /// A service extension that processed the request.
  public struct PassedExtension: Sendable, Hashable {
    /// The extension's name.
    public var name: String
    /// The result of the extension.
    public var state: ExtensionState
    /// The duration in milliseconds.
    public var milliseconds: Int64

    /// Creates an entry for an extension.
    public init(name: String, state: ExtensionState, milliseconds: Int64) {
      (self.name, self.state, self.milliseconds) = (name, state, milliseconds)
    }

    /// Appends the extension as an entry of the journal contains it.
    public func append(to buffer: inout ByteBuffer) {
      ExtensionStates.append(state, name: name, to: &buffer)
      buffer.append(varint: UInt64(clamping: milliseconds))
    }
  }

  /// The content of an entry.
  public enum Content: Sendable, Hashable {
    /// The verdict on a request for one device, or without a look-up of devices.
    case request(JournalJudgement)
    /// Some of the person's devices.
    case page(Page)
    /// The service extensions that the request passed. Its verdict follows later.
    case extensions([PassedExtension])
    /// The number of consecutive unreadable offsets, from the entry's on, which were skipped.
    ///
    /// The entry's timestamp is the time at which they were skipped.
    case unreadable(Int64)
  }

  /// The record's offset in its partition of `requests`.
  public var offset: Int64
  /// The record's timestamp, in milliseconds since 1970.
  ///
  /// If the record at that offset has another one, the topic was made again and the entry does not count.
  public var timestamp: Int64
  /// What the entry says.
  public var content: Content
}
