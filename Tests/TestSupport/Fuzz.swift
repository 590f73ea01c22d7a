import EventLoop
import Glibc

/// A decoder under random input: valid inputs are mutated, and what comes of each must keep a property.
///
/// Each input depends only on the seed and its number, so one that fails can be made again alone. The environment says how many
/// (`TESTS_FUZZ_INPUTS`, else as many as the target says, and fewer in the short form), with which seed (`TESTS_FUZZ_SEED`, else 1, or any for more inputs than
/// the target says), and, to see a single one again, which number (`TESTS_FUZZ_NUMBER`).
///
/// While it runs, the input at hand stands in a file, which a trap or a hang leaves behind; its name is printed at the start of long runs.
public struct Fuzz: Sendable {
  /// An input for which the property did not hold.
  public struct Failure: Sendable, CustomStringConvertible {
    /// What happened, and how to see it again.
    public let description: String
  }

  /// Inputs that show the property broken; no more are looked for.
  private static let mostFailures = 5
  /// An input that takes longer than this counts as a hang.
  private static let longestMilliseconds: Int64 = 2_000

  /// What the target is called.
  public let name: String
  /// The sequence that all inputs come from.
  public let seed: UInt64
  /// How many inputs.
  public let count: Int
  private let only: Int?
  private let mutator: Mutator

  /// Describes a target.
  ///
  /// - Parameters:
  ///   - corpus: valid inputs, and those that failed once; each is tried as it is first.
  ///   - tokens: words of the format, which are put in at random places.
  ///   - inputs: how many are tried in the complete form, unless the environment says otherwise.
  ///   - longest: bytes of an input at most.
  public init(_ name: String, corpus: [[UInt8]], tokens: [String] = [], inputs: Int = 5_000, longest: Int = 16_384) {
    precondition(!corpus.isEmpty, "mutations begin with something valid")
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    self.name = name
    // Beyond the corpus, the short form tries some hundred.
    let usual = isComplete ? inputs : min(inputs, corpus.count + max(500, inputs / 10))
    count = variable("TESTS_FUZZ_INPUTS").flatMap { Int($0) } ?? usual
    seed = variable("TESTS_FUZZ_SEED").flatMap { UInt64($0) } ?? (count > usual ? .random(in: 1...(.max)) : 1)
    only = variable("TESTS_FUZZ_NUMBER").flatMap { Int($0) }
    mutator = Mutator(corpus: corpus, tokens: tokens.map { Array($0.utf8) }, longest: longest)
  }

  /// The numbers of the inputs to try.
  public var numbers: Range<Int> { only.map { $0..<$0 + 1 } ?? 0..<count }

  /// The input of a number, and a generator for whatever else the number decides.
  public func input(_ number: Int) -> (bytes: [UInt8], random: SeededRandom) {
    var random = SeededRandom(seed: seed &+ UInt64(number) &* 0xD1B5_4A32_D192_ED03)
    if number < mutator.corpus.count { return (mutator.corpus[number], random) }
    let bytes = mutator.input(&random)
    return (bytes, random)
  }

  /// How to see an input again.
  public func place(_ number: Int) -> String { "TESTS_FUZZ_SEED=\(seed) TESTS_FUZZ_NUMBER=\(number)" }

  /// A failure of an input that the caller has tried.
  public func failure(_ number: Int, _ what: String) -> Failure {
    Failure(description: "\(name): \(what)\n  again: \(place(number))\n  input: \(Self.shown(input(number).bytes))")
  }

  /// Tries all inputs; answers the first that fail.
  ///
  /// - Parameter property: what is wrong with the outcome of an input, or nil. The bytes lie in a block of exactly their size, so that an
  ///   address sanitizer sees a read beyond them.
  public func run(_ property: (_ bytes: UnsafeRawBufferPointer, _ random: inout SeededRandom) throws -> String?) -> [Failure] {
    let trail = Trail(name, seed)
    defer { trail?.remove() }
    let before = Self.residentBytes()
    if count > 50_000 { print("fuzz \(name): \(count) inputs, seed \(seed), the one at hand in \(trail?.path ?? "no file")") }
    var failures: [Failure] = []
    let beginning = SteadyClock.milliseconds()
    for number in numbers {
      var (bytes, random) = input(number)
      trail?.note(number, bytes)
      let block = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
      defer { block.deallocate() }
      block.copyBytes(from: bytes)
      let start = Self.workedMilliseconds()
      do {
        if let what = try property(UnsafeRawBufferPointer(block), &random) { failures.append(failure(number, what)) }
      } catch { failures.append(failure(number, "\(error)")) }
      let took = Self.workedMilliseconds() - start
      if took > Self.longestMilliseconds { failures.append(failure(number, "took \(took) ms")) }
      if failures.count >= Self.mostFailures { break }
    }
    if count > 50_000 {
      let grown = (Self.residentBytes() - before) >> 20
      print("fuzz \(name): done in \(SteadyClock.milliseconds() - beginning) ms, memory grew by \(grown) MiB, \(failures.count) failures")
    }
    return failures
  }

  /// What this thread has worked, in milliseconds: a busy machine makes no input slow.
  private static func workedMilliseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// What the process holds in memory, in bytes.
  public static func residentBytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The bytes as a Swift literal, the beginning of them.
  private static func shown(_ bytes: [UInt8]) -> String {
    let text = bytes.prefix(2_000).map { byte -> String in
      switch byte {
      case UInt8(ascii: "\\"): "\\\\"
      case UInt8(ascii: "\""): "\\\""
      case 0x20..<0x7F: String(UnicodeScalar(byte))
      default: "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return "\"\(text.joined())\"" + (bytes.count > 2_000 ? " … \(bytes.count) bytes" : "")
  }
}

/// The file that has the input at hand, as a shared mapping: what was written survives the process.
private final class Trail {
  let path: String
  private let memory: UnsafeMutableRawPointer
  private let seed: UInt64
  private static let size = 128 << 10

  init?(_ name: String, _ seed: UInt64) {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let plain = name.map { $0.isLetter || $0.isNumber ? $0 : "-" }
    path = "\(folder)/carillon-fuzz-\(String(plain))-\(getpid())"
    self.seed = seed
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard ftruncate(descriptor, Self.size) == 0,
      let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
    else { return nil }
    self.memory = memory
  }

  /// The seed and the input's number in eight bytes each, its length in eight, and the input.
  func note(_ number: Int, _ bytes: [UInt8]) {
    memory.storeBytes(of: seed, as: UInt64.self)
    memory.storeBytes(of: number, toByteOffset: 8, as: Int.self)
    memory.storeBytes(of: bytes.count, toByteOffset: 16, as: Int.self)
    bytes.withUnsafeBytes {
      memory.advanced(by: 24).copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: min($0.count, Self.size - 24))
    }
  }

  func remove() {
    munmap(memory, Self.size)
    unlink(path)
  }
}
