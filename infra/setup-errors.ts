/**
 * Turns the error of a dependency that does not answer at the start into one that names the setting and the address,
 * never a password. A dependency that fails later shows only as a symptom of something else.
 */
import { SetupError } from '#contracts/ports/setup-error.ts';

export interface Dependency {
  readonly dependency: string;
  readonly setting: string;
  /** Without user and password. */
  readonly address: string;
}

/** A cluster's address names several hosts, so `URL` cannot parse it. */
const severalHosts = /^([a-z+]+:\/\/)(?:.*@)?([\w.:,-]+)/;

/** The address in a URL: scheme, host and path, without user, password and options. */
export const addressOf = (url: string): string => {
  const parsed = URL.parse(url);
  if (parsed !== null) return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
  const [, scheme, hosts] = severalHosts.exec(url) ?? [];
  return scheme === undefined || hosts === undefined ? 'its address' : `${scheme}${hosts}`;
};

const advice: readonly (readonly [RegExp, string])[] = [
  [/^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH)$/, 'takes no connection: start it, or correct the address'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'has a host name that does not resolve: correct the address'],
  [/^(28P01|28000|AUTHENTICATION_FAILED|401|403)$/, 'refuses user or password: correct them'],
  [/^(3D000|UNKNOWN_DATABASE)$/, 'has no such database: create it, or correct the name'],
];

/** The innermost error with a reason: clients wrap it, and a host with two addresses fails once for each. */
const rootOf = (error: unknown): unknown => {
  if (error instanceof AggregateError && error.errors.length > 0) return rootOf(error.errors[0]);
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
};

const whyOf = (error: unknown): string => {
  const root = rootOf(error);
  if (typeof root !== 'object' || root === null) return String(root);
  const { code, type, name, $metadata } = root as Readonly<Record<string, unknown>> & {
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return String(status);
  // ClickHouse also gives its codes as words.
  if (typeof type === 'string' && /^[A-Z_]+$/.test(type)) return type;
  if (typeof code === 'string') return code;
  return root instanceof Error ? root.message : String(name);
};

/** One line for the operator: the setting, the address, the remedy, and the code of the error. */
export const messageFor = ({ dependency, setting, address }: Dependency, error: unknown): string => {
  const why = whyOf(error);
  const known = advice.find(([pattern]) => pattern.test(why))?.[1];
  return `${setting}: ${dependency} at ${address} ${known ?? 'does not answer: check that it runs, and correct the address'} (${why})`;
};

/** @throws SetupError in place of any other error; a SetupError of `work` passes as it is */
export const requireAnswer = async <T>(named: Dependency, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(messageFor(named, error), { cause: error });
  }
};
