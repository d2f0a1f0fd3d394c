import { type Command, optionText, usageOf } from "./command.ts";

const head = `# Command line

\`npm run manual\` generates this page from the program's own table of commands; a test keeps the two equal.

\`durable-tape\` and \`tape\` are the same program; \`npx durable-tape\` runs it without installing. Exit codes: 0 success, 1 failure, 2 usage error, 3 something is UNKNOWN or STUCK (\`status\` and \`doctor\`). Every error message says what to do next. Colours appear only on a terminal, and never when \`NO_COLOR\` is set.
`;

/** The text of docs/cli.md. */
export function manual(commands: readonly Command[]): string {
  return `${[head, ...commands.map(section)].join("\n")}`;
}

function section(command: Command): string {
  const { name, summary, arguments: parameters = [], options = {} } = command;
  const rows = [
    ...parameters.map((parameter) => `| \`${parameter.name}\` | ${parameter.help} |`),
    ...Object.entries(options).map(
      ([long, option]) => `| \`${optionText(long, option).replaceAll("|", "\\|")}\` | ${option.help} |`,
    ),
  ];
  const table = rows.length === 0 ? [] : ["", "| | |", "|---|---|", ...rows];
  return [
    `## ${name}`,
    "",
    `${summary[0]!.toUpperCase()}${summary.slice(1)}.`,
    "",
    "```text",
    usageOf(command),
    "```",
    ...table,
    "",
  ].join("\n");
}
