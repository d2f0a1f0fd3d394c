import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Registry {
  readonly url: string;
  close(): void;
}

/**
 * A registry on loopback that has the packed tarball as durable-tape, and sends every other request on to the registry
 * that npm uses here. So `npm install durable-tape` is what the guides say, word for word.
 */
export async function startRegistry(tarball: string, manifest: string): Promise<Registry> {
  const elsewhere = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim().replace(/\/$/, "");
  const bytes = readFileSync(tarball);
  const packed = JSON.parse(readFileSync(manifest, "utf8")) as { name: string; version: string };
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    if (path === `/${packed.name}`) {
      const dist = { tarball: `${url()}/${packed.name}.tgz`, integrity };
      const version = { ...packed, dist };
      const document = {
        name: packed.name,
        "dist-tags": { latest: packed.version },
        versions: { [packed.version]: version },
      };
      response.setHeader("content-type", "application/json").end(JSON.stringify(document));
    } else if (path === `/${packed.name}.tgz`) {
      response.setHeader("content-type", "application/octet-stream").end(bytes);
    } else {
      response.writeHead(307, { location: elsewhere + path }).end();
    }
  });
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: url(), close: () => void server.close() };
}
