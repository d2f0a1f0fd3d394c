import { resolve } from "node:path";
import { TapeError } from "../model/errors.ts";
import { type FileContent, readDocument } from "./document.ts";
import { badConfig, defaultFile, type LoadedConfig, loadConfig, readText } from "./load.ts";

/**
 * Reads `tape.yaml` for `durable-tape deploy`. It ignores the environment of this machine, so that the same file always
 * gives the same settings. Variables have the values of `tape.deploy.env`. A variable of `tape.deploy.secrets` stays in
 * the settings as `${NAME}`: its value is not known here, and must not be.
 */
export function loadDeployConfig(options: { readonly cwd: string; readonly file?: string }): LoadedConfig {
  const { cwd, file = defaultFile } = options;
  const text = readText(resolve(cwd, file), file, true) ?? "";
  const env: Record<string, string> = {};
  for (const { path, value } of readDocument(text, {}).values) {
    const [section, name] = [path.slice(0, 3).join("."), path[3]];
    if (path.length !== 4 || name === undefined) continue;
    if (section === "tape.deploy.env") env[name] = String(value);
    if (section === "tape.deploy.secrets") env[name] = `\${${name}}`;
  }
  assertNoDefaults(readDocument(text, env).values);
  const loaded = loadConfig({ cwd, file, env, missing });
  const { env: plain, secrets } = loaded.settings.tape.deploy;
  const both = Object.keys(plain).filter((name) => Object.hasOwn(secrets, name));
  if (both.length === 0) return loaded;
  const problems = both.map((name) => ({
    where: file,
    message: `variable ${name} is in tape.deploy.env and in tape.deploy.secrets; keep one`,
  }));
  throw badConfig(problems);
}

/**
 * A default of a secret is a secret that the file spells out. The file is part of the image, although the services use the
 * value of the secret instead.
 */
function assertNoDefaults(values: FileContent["values"]): void {
  const secrets = new Set(values.flatMap(({ path }) => (isSecret(path) ? [path[3]!] : [])));
  for (const { path, defaulted } of values) {
    const name = defaulted.find((one) => secrets.has(one));
    if (name === undefined) continue;
    const setting = path.join(".");
    const message = `${setting} has a default of the secret ${name}; write \${${name}} without a default`;
    throw new TapeError("TAPE_DEPLOY_SECRET", message, { setting });
  }
}

const isSecret = (path: readonly string[]): boolean =>
  path.length === 4 && path.slice(0, 3).join(".") === "tape.deploy.secrets";

const missing = (name: string): string =>
  `variable ${name} has no value: add it to tape.deploy.env or tape.deploy.secrets, or add a default with \${${name}:-…}`;
