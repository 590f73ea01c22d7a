extension CommandLineProgram {
  var zshCompletion: String {
    """
    #compdef \(name)
    # Completion of \(name) in zsh, made by '\(name) completion zsh'. To load it: source <(\(name) completion zsh), or save it as _\(name)
    # in a folder of $fpath.

    _\(name)() {
      if ((CURRENT == 2)); then
        local -a commands=(
    \(zshCommands)    )
        _describe -t commands command commands
        compadd -- \(Self.standaloneFlags.joined(separator: " "))
        return
      fi
      local command=$words[2]
      shift words
      ((CURRENT--))
    \(zshSecondWords)  case $command in
    \(commands.map(zshBranch).joined())  esac
    }

    if [[ ${funcstack[1]} == _\(name) ]]; then
      _\(name) "$@"
    else
      compdef _\(name) \(name)
    fi

    """
  }

  /// The first words with their summaries. A word that only begins commands has no summary of its own.
  private var zshCommands: String {
    firstWords.filter { !Self.standaloneFlags.contains($0) }.map { first in
      let summary = commands.first { $0.name == first }?.summary ?? commands.first { $0.words[0] == first }?.summary ?? ""
      return "      \(quoted("\(zshEscaped(first)):\(summary)"))\n"
    }.joined()
  }

  /// Reads the second word if it belongs to the command, and offers it while it is being typed.
  private var zshSecondWords: String {
    commands.filter { $0.words.count > 1 }.map { command in
      """
        if [[ $command == \(command.words[0]) ]]; then
          if ((CURRENT == 2)); then
            compadd -- \(command.words[1])
          elif [[ $words[2] == \(command.words[1]) ]]; then
            command=\(quoted(command.name))
            shift words
            ((CURRENT--))
          fi
        fi

      """
    }.joined()
  }

  private func zshBranch(_ command: Command) -> String {
    let settings = command.completedSettings.flatMap { setting in
      setting.typedFlags.map { flag in
        let repeats = setting.isRepeated ? "*" : ""
        let value = setting.isSwitch ? "" : "=:\(zshEscaped(setting.placeholder ?? "")):\(zshAction(setting))"
        let text = "[\(zshEscaped(firstSentence(setting.text)))]"
        // The text comes between the flag and its value.
        return repeats + flag + (value.isEmpty ? text : "=" + text + value.dropFirst())
      }
    }
    let arguments = command.arguments.map { argument in
      "\(argument.count.isRepeated ? "*" : "")\(argument.count == .optional ? ":" : ""):\(zshEscaped(argument.name)):\(zshAction(argument.completion))"
    }
    let help = ["--help[the most used flags]", "--help-all[all flags]"]
    let lines = (settings + help + arguments).map { "        \(quoted($0))" }
    return "    \(quoted(command.name)))\n      _arguments \\\n\(lines.joined(separator: " \\\n")) ;;\n"
  }

  private func zshAction(_ setting: SettingDeclaration) -> String {
    guard setting.isRepeated, case .words(let words) = setting.completion else { return zshAction(setting.completion) }
    return "_sequence compadd - \(words.joined(separator: " "))"
  }

  private func zshAction(_ completion: Completion) -> String {
    switch completion {
    case .nothing: " "
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .file: "_files"
    case .folder: "_files -/"
    }
  }

  private func firstSentence(_ text: String) -> String {
    let end = text.firstRange(of: ". ")?.lowerBound ?? text.endIndex
    return String(text[..<end].trimmingPrefix(" "))
  }

  /// A text for an `_arguments` specification.
  private func zshEscaped(_ text: String) -> String {
    text.map { "\\[]:".contains($0) ? "\\\($0)" : String($0) }.joined()
  }
}
