import EventLoop
import Foundation
import Synchronization

/// A child process, waited for by its id.
///
/// Foundation's `Process` lists all descriptors of this process to close them in the child, and reads past the end of that list when there
/// are more than a thousand, as here where many tests run at the same time.
final class SpawnedProcess: Sendable {
  /// What a standard stream of the child is.
  enum Stream {
    case file(URL, flags: Int32)
    case descriptor(Int32)
    case closed
  }

  /// glibc's `posix_spawn_file_actions_addclosefrom_np`, which Swift does not see.
  private static let closeFrom = unsafeBitCast(
    dlsym(nil, "posix_spawn_file_actions_addclosefrom_np"),
    to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)

  /// Its id.
  let pid: Int32
  private let ended = Mutex<Int32?>(nil)

  /// Starts a program in a process group of its own, with its own signals and no descriptors but the standard streams.
  init(_ program: URL, _ arguments: [String], environment: [String: String], streams: [Stream]) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in streams.enumerated() {
      switch stream {
      case .file(let url, let flags): posix_spawn_file_actions_addopen(&actions, Int32(number), url.path, flags, 0)
      case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
      case .closed: posix_spawn_file_actions_addclose(&actions, Int32(number))
      }
    }
    _ = Self.closeFrom(&actions, Int32(streams.count))

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    let words = ([program.path] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in words + variables { free(text) } }
    var pid: pid_t = 0
    let result = ChildProcess.withoutSpawning { posix_spawn(&pid, program.path, &actions, &attributes, words, variables) }
    guard result == 0 else { throw CommandFailure(description: "\(program.path) cannot be started: \(String(cString: strerror(result)))") }
    self.pid = pid
  }

  /// How it ended: the exit code, or 128 and the signal's number; nil while it runs.
  var status: Int32? {
    ended.withLock { ended in
      var status: Int32 = 0
      if ended == nil, waitpid(pid, &status, WNOHANG) == pid {
        ended = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
      }
      return ended
    }
  }

  /// Sends a signal; nothing happens when it is known to have ended, for its id may be another's by then.
  func signal(_ number: Int32) { ended.withLock { if $0 == nil { kill(pid, number) } } }
}
