/** The fields of package.json that name where the source is. */
export interface RepositoryFields {
  readonly repository: { readonly type: "git"; readonly url: string };
  readonly homepage: string;
  readonly bugs: { readonly url: string };
}

/**
 * Fields for the repository that a release is made from: its address, or that of a git remote. A copy of the repository
 * has another one, so package.json names none. npm compares it with the one that built the package (provenance).
 */
export function repositoryFields(address: string): RepositoryFields {
  const [, host, path] =
    /^(?:(?:git\+)?https:\/\/(?:[^@/]+@)?|ssh:\/\/git@|git@)([\w.-]+)[/:]([\w./-]+?)(?:\.git)?\/?$/.exec(address) ?? [];
  if (host === undefined || path === undefined)
    throw new Error(`${address} is no address of a repository: use https://host/owner/name`);
  const page = `https://${host}/${path}`;
  return {
    repository: { type: "git", url: `git+${page}.git` },
    homepage: `${page}#readme`,
    bugs: { url: `${page}/issues` },
  };
}
