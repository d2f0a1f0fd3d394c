import { spawn } from "node:child_process";

/** The program that opens an address, where there is one and somebody would see it. */
function openerOf(env: Readonly<Record<string, string | undefined>>, platform: string): readonly string[] | undefined {
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["cmd", "/c", "start", ""];
  return env.DISPLAY === undefined && env.WAYLAND_DISPLAY === undefined ? undefined : ["xdg-open"];
}

/** Opens the page in a browser; where there is none, says its address. */
export function openPage(url: string, tell: (line: string) => void): void {
  const [program, ...args] = openerOf(process.env, process.platform) ?? [];
  if (program === undefined) {
    tell(`the page is at ${url}`);
    return;
  }
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => tell(`the page is at ${url}`));
  child.on("spawn", () => tell(`opened ${url}`));
  child.unref();
}
