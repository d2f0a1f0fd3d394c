import type { Plan } from "./plan.ts";
import { shellWord, variablesIn } from "./text.ts";

/** Prints what happens next, so that a failure is found by its heading. */
export const step = (title: string): string[] => ["", `echo "== ${title}"`];

/** The first lines of deploy.sh: its folder, the image, and the manifests with that image in a temporary folder. */
export function preamble({ image }: Plan): string[] {
  const needed = variablesIn(image).filter((name) => !image.includes(`\${${name}:-`));
  return [
    'cd "$(dirname "$0")"',
    ...needed.map((name) => `: "\${${name}:?set ${name}, a part of the image in tape.yaml}"`),
    `IMAGE="${image}"`,
    "# shellcheck disable=SC2016 # the names of the variables are searched for, not their values",
    `TEMPLATE=${shellWord(image)}`,
    "work=$(mktemp -d)",
    `trap 'rm -rf "$work"' EXIT`,
    "",
    "# A manifest with the image's variables filled in.",
    "fill() {",
    "  local text",
    '  text=$(<"$1")',
    // In quotes: the first slash of an image without variables would end the pattern.
    `  printf '%s\\n' "\${text//"$TEMPLATE"/$IMAGE}" >"$work/$1"`,
    "}",
  ];
}

/** Builds the image from the project's folder and pushes it. */
export const build = (project: string): string[] => [
  ...step("build the image"),
  `docker build --file Dockerfile --tag "$IMAGE" ${shellWord(project)}`,
  'docker push "$IMAGE"',
];
