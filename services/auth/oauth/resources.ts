/** The resources for which a token can be asked: the api and the MCP server. Each has one spelling in tokens. */

export const withoutSlash = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url);

/** @param url a longer one than any resource has is none */
const spelling = (url: string): string | null => {
  if (url.length > 2_000 || !URL.canParse(url)) return null;
  const { href, hash, search, username, password } = new URL(url);
  // A fragment is forbidden by RFC 8707; the others would be another resource.
  if (hash !== '' || search !== '' || username !== '' || password !== '' || url.includes('#')) return null;
  return withoutSlash(href);
};

export class Resources {
  readonly #api: () => string;
  readonly #mcp: () => string;

  constructor(api: () => string, mcp: () => string) {
    this.#api = api;
    this.#mcp = mcp;
  }

  /** Where a request names none. */
  get preset(): string {
    return withoutSlash(this.#mcp());
  }

  /** The resource as tokens name it; null where we have no such resource. Clients write it with or without a slash. */
  find(url: string): string | null {
    const asked = spelling(url);
    if (asked === null) return null;
    return [this.#mcp(), this.#api()].map(withoutSlash).find((one) => spelling(one) === asked) ?? null;
  }
}
