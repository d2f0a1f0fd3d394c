import { type Command, UsageError } from "../command.ts";

const shells = ["bash", "zsh", "fish"] as const;

/** Generated from the table of commands, so every command and option is completed. */
export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    summary: "prints a shell completion script",
    arguments: [{ name: "shell", help: shells.join(", ") }],
    run: async ({ arguments: { shell }, screen }) => {
      const all = commands();
      if (shell === "bash") screen.block(bash(all));
      else if (shell === "zsh") screen.block(`autoload -U +X bashcompinit && bashcompinit\n${bash(all)}`);
      else if (shell === "fish") screen.block(fish(all));
      else throw new UsageError(`completion: <shell> must be one of ${shells.join(", ")}, not ${shell}`);
      return 0;
    },
  };
}

const firstWords = (commands: readonly Command[]): string[] => [
  ...new Set(commands.map(({ name }) => name.split(" ")[0]!)),
];
const secondWords = (commands: readonly Command[], first: string): string[] =>
  commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.split(" ")[1]!] : []));
const optionsOf = (command: Command): string[] => Object.keys(command.options ?? {}).map((option) => `--${option}`);

function bash(commands: readonly Command[]): string {
  const groups = firstWords(commands).filter((word) => secondWords(commands, word).length > 0);
  const cases = [
    ...groups.map((word) => `    "${word}") words="${secondWords(commands, word).join(" ")}" ;;`),
    ...commands.map((command) => `    "${command.name}") words="${optionsOf(command).join(" ")}" ;;`),
  ];
  return `_durable_tape() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words="" typed="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) break ;; *) typed="\${typed:+$typed }$word" ;; esac
    [[ "$typed" == *" "* ]] && break
  done
  case "$typed" in
    "") words="${firstWords(commands).join(" ")} --help --version" ;;
${cases.join("\n")}
    *) case "\${typed%% *}" in
${commands
  .filter(({ name }) => !name.includes(" "))
  .map((command) => `      "${command.name}") words="${optionsOf(command).join(" ")}" ;;`)
  .join("\n")}
    esac ;;
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
}
complete -o default -F _durable_tape durable-tape tape`;
}

function fish(commands: readonly Command[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`;
  const lines = firstWords(commands).map((word) => {
    const exact = commands.find(({ name }) => name === word);
    return `complete -c durable-tape -f -n __fish_use_subcommand -a ${word} -d ${quoted(exact?.summary ?? word)}`;
  });
  for (const command of commands) {
    const [first, second] = command.name.split(" ");
    const seen = `__fish_seen_subcommand_from ${first}`;
    if (second !== undefined) {
      lines.push(`complete -c durable-tape -f -n ${quoted(seen)} -a ${second} -d ${quoted(command.summary)}`);
    }
    const when = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
    for (const [option, { help }] of Object.entries(command.options ?? {})) {
      lines.push(`complete -c durable-tape -n ${quoted(when)} -l ${option} -d ${quoted(help)}`);
    }
  }
  return lines.join("\n");
}
