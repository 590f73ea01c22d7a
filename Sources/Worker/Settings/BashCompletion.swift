extension CommandLineProgram {
  var bashCompletion: String {
    """
    # Completion of \(name) in bash, made by '\(name) completion bash'. To load it: source <(\(name) completion bash)

    _\(name)() {
      local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
      # Bash takes --flag=value for three words.
      if [[ $current == = ]]; then
        current=
      elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
      fi
      COMPREPLY=()
      if ((COMP_CWORD == 1)); then
        \(BashReply.words(firstWords))
        return
      fi

      local before=("${COMP_WORDS[@]:1:COMP_CWORD - 1}")
      local command=${before[0]}
      case "${before[0]} ${before[1]-}" in
        \(commands.map(\.words).filter { $0.count > 1 }.map { quoted($0.joined(separator: " ")) }.joined(separator: " | ")))
          command="${before[0]} ${before[1]}" ;;
      esac

      case "$command $previous" in
    \(bashValues)  esac

      local flags=
      case $command in
    \(bashCommands)  esac
      if [[ $current == -* || ${#COMPREPLY[@]} == 0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
      fi
    }

    complete -F _\(name) \(name)

    """
  }

  /// The first words of the commands, and the flags that may come first.
  var firstWords: [String] {
    var seen: Set<String> = []
    return commands.compactMap(\.words.first).filter { seen.insert($0).inserted } + Self.standaloneFlags
  }

  /// A branch for each kind of value: the flags of the commands that take it.
  private var bashValues: String {
    var replies: [(reply: String, places: [String])] = []
    for command in commands {
      for setting in command.completedSettings where !setting.isSwitch {
        let reply = BashReply.value(setting)
        let place = quoted("\(command.name) --\(setting.flag)")
        if let index = replies.firstIndex(where: { $0.reply == reply }) {
          replies[index].places.append(place)
        } else {
          replies.append((reply, [place]))
        }
      }
    }
    return replies.map { "    \($0.places.joined(separator: " | ")))\n      \($0.reply.isEmpty ? "" : $0.reply + "\n      ")return ;;\n" }
      .joined()
  }

  /// A branch for each command: its flags, and its next word if it is known.
  private var bashCommands: String {
    var branches = ""
    for first in firstWords where !Self.standaloneFlags.contains(first) {
      let further = commands.map(\.words).filter { $0.count > 1 && $0[0] == first }.map { $0[1] }
      let next = further.isEmpty ? "" : "((COMP_CWORD == 2)) && \(BashReply.words(further))"
      branches += branch(first, commands.first { $0.name == first }, next)
      for word in further { branches += branch("\(first) \(word)", commands.first { $0.name == "\(first) \(word)" }, "") }
    }
    return branches
  }

  private func branch(_ name: String, _ command: Command?, _ next: String) -> String {
    let flags = (command?.completedSettings.flatMap(\.typedFlags) ?? []) + (command == nil ? [] : ["--help", "--help-all"])
    let argument = command?.arguments.lazy.map { BashReply.value($0.completion) }.first { !$0.isEmpty } ?? ""
    let lines = ["flags=\(quoted(flags.joined(separator: " ")))", next, argument].filter { !$0.isEmpty }
    return "    \(quoted(name)))\n      " + lines.joined(separator: "\n      ") + " ;;\n"
  }
}

/// Lines of the script that offer words.
private enum BashReply {
  static func words(_ words: [String]) -> String {
    "mapfile -t COMPREPLY < <(compgen -W \(quoted(words.joined(separator: " "))) -- \"$current\")"
  }

  /// The offer for a setting's value; empty for none. After a comma it offers a further value.
  static func value(_ setting: SettingDeclaration) -> String {
    guard setting.isRepeated, case .words(let words) = setting.completion else { return value(setting.completion) }
    return "mapfile -t COMPREPLY < <(compgen -P \"${current%\"${current##*,}\"}\" -W \(quoted(words.joined(separator: " ")))"
      + " -- \"${current##*,}\")"
  }

  static func value(_ completion: Completion) -> String {
    switch completion {
    case .nothing: ""
    case .words(let words): self.words(words)
    case .file: paths("-f")
    case .folder: paths("-d")
    }
  }

  /// Outside of a running completion, as in a test, `compopt` fails.
  private static func paths(_ kind: String) -> String {
    "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen \(kind) -- \"$current\")"
  }
}
