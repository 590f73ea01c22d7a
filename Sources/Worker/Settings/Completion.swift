/// What a shell offers while somebody types a value.
public enum Completion: Sendable, Hashable {
  /// Nothing: the program does not know the values.
  case nothing
  /// One of these words.
  case words([String])
  /// A path of a file.
  case file
  /// A path of a folder.
  case folder
}

/// A shell with completion.
public enum Shell: String, CaseIterable, Sendable {
  /// Bash 4 or newer.
  case bash
  /// Zsh.
  case zsh
}

extension CommandLineProgram {
  /// Writes a script for a shell, which asks this program for the completions of a line.
  public func completionScript(for shell: Shell) -> String {
    switch shell {
    case .bash:
      """
      # Completion of \(name) in bash, made by '\(name) completion bash'. To load it: source <(\(name) completion bash)

      _\(name)() {
        local offer current=${COMP_WORDS[COMP_CWORD]}
        [[ $current != = ]] || current=
        COMPREPLY=()
        while IFS= read -r offer; do
          # Outside of a running completion, as in a test, compopt fails.
          case $offer in
            :files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
            :folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("${offer%%:*}") ;;
          esac
        done < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
      }

      complete -F _\(name) \(name)

      """
    case .zsh:
      """
      #compdef \(name)
      # Completion of \(name) in zsh, made by '\(name) completion zsh'. To load it: source <(\(name) completion zsh), or save it as _\(name)
      # in a folder of $fpath.

      _\(name)() {
        local offer
        local -a offers
        for offer in "${(@f)$($words[1] completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
          case $offer in
            :files) _files ;;
            :folders) _files -/ ;;
            ?*) offers+=("$offer") ;;
          esac
        done
        (($#offers)) && _describe \(name) offers
      }

      if [[ ${funcstack[1]} == _\(name) ]]; then
        _\(name) "$@"
      else
        compdef _\(name) \(name)
      fi

      """
    }
  }

  /// The completions of a line, whose last word is being typed: words with their meaning after a colon, or `:files` or `:folders`.
  public func completions(of typed: [String]) -> [String] {
    // Bash takes `--flag=value` for three words.
    var words = typed.filter { $0 != "=" }
    let current = typed.last == "=" ? "" : words.popLast() ?? ""
    let further = commands.filter { $0.words.count > words.count && $0.words.starts(with: words) }
    var offers = further.map { ($0.words[words.count], $0.words.count == words.count + 1 ? $0.summary : "") }
    if words.isEmpty { offers += ["--help", "--help-all", "--version"].map { ($0, "") } }
    var flags: [(String, String)] = []
    if let (command, rest) = command(in: words) {
      let settings = command.settings + [Self.configuration.declaration]
      func value(of flag: some StringProtocol, after start: String) -> [String]? {
        let setting = settings.first { "--\($0.flag)" == flag && !$0.isSwitch }
        return setting.map { $0.completion.offers(for: current.dropFirst(start.count), isList: $0.isRepeated).map { start + $0 } }
      }
      if let flag = rest.last, let offers = value(of: flag, after: "") { return offers }
      if let equals = current.firstIndex(of: "="), let offers = value(of: current[..<equals], after: String(current[...equals])) {
        return offers
      }
      flags = settings.filter { !$0.isPassedOn }.flatMap { setting in setting.typedFlags.map { ($0, setting.text.firstSentence) } }
      flags += [("--help", "the most used flags"), ("--help-all", "all flags")]
      let argument = command.arguments.lazy.map { $0.completion.offers(for: current[...], isList: false) }.first { !$0.isEmpty }
      if !current.hasPrefix("-"), let argument { return argument }
    }
    func lines(_ offers: [(String, String)]) -> [String] {
      var seen: Set<String> = []
      return offers.filter { $0.0.hasPrefix(current) && seen.insert($0.0).inserted }.map { $1.isEmpty ? $0 : "\($0):\($1)" }
    }
    let found = lines(offers)
    return found.isEmpty ? lines(flags) : found
  }
}

extension Completion {
  /// The offers for a value that begins with some text. In a list they are for the part after its last comma.
  fileprivate func offers(for text: Substring, isList: Bool) -> [String] {
    switch self {
    case .nothing: return []
    case .file: return [":files"]
    case .folder: return [":folders"]
    case .words(let words):
      let start = isList ? text.lastIndex(of: ",").map { text[...$0] } ?? "" : ""
      return words.filter { $0.hasPrefix(text.dropFirst(start.count)) }.map { start + $0 }
    }
  }
}

extension Command {
  /// The words of the command's name.
  fileprivate var words: [String] { name.split(separator: " ").map(String.init) }
}

extension SettingDeclaration {
  /// The flags to type for it. A switch that is on may also be turned off.
  fileprivate var typedFlags: [String] { ["--\(flag)"] + (isSwitch && defaultText == "true" ? ["--no-\(flag)"] : []) }
}

extension String {
  fileprivate var firstSentence: String { String(self[..<(firstRange(of: ". ")?.lowerBound ?? endIndex)]) }
}
