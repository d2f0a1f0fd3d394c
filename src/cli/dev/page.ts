import { spawn } from "node:child_process";

/** The program that opens an address in a browser; undefined without a display. */
function openerOf(env: Readonly<Record<string, string | undefined>>, platform: string): readonly string[] | undefined {
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["cmd", "/c", "start", ""];
  return env.DISPLAY === undefined && env.WAYLAND_DISPLAY === undefined ? undefined : ["xdg-open"];
}

/** Opens the page in a browser; without one, prints its address. */
export function openPage(url: string, print: (line: string) => void): void {
  const [program, ...args] = openerOf(process.env, process.platform) ?? [];
  if (program === undefined) {
    print(`the page is at ${url}`);
    return;
  }
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => print(`the page is at ${url}`));
  child.on("spawn", () => print(`opened ${url}`));
  child.unref();
}
