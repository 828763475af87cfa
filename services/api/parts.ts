import type { Middleware } from 'koa';
import type { Allowances } from './call/allowances.ts';
import type { CallPatience, Deps } from './call/deps.ts';
import type { BodyTools } from './call/input.ts';
import type { Invoke } from './call/invoke.ts';
import type { Principal } from './call/operation.ts';
import type { Authenticate, Resource } from './callers/bearer-tokens.ts';

/**
 * What the server serves beside the api, on hosts or paths of its own: a part answers its own requests and leaves all
 * others to the next.
 */

/** What a part gets from the server. */
export interface PartTools {
  readonly deps: Deps;
  readonly allowances: Allowances;
  readonly patience: CallPatience;
  /** What holds and turns the bodies of requests: a part that reads one larger than a form takes them. */
  readonly bodies: BodyTools;
  /** The owner of a bearer token, as for a call of the api. @throws Refusal 401 */
  readonly identify: (token: string, resource: Resource) => Promise<Principal>;
  /** `identify` for a request that comes from outside: a token that fails costs the address a guess. */
  readonly authenticate: Authenticate;
  /** Runs an operation as a principal, with the checks and effects of a call of the api. */
  readonly invoke: Invoke;
}

export type Part = (tools: PartTools) => Middleware;

/** What the whole server needs, its parts included. */
export interface ServerDeps extends Deps {
  /** Runs before everything else: /livez and /readyz. */
  readonly first?: readonly Middleware[];
}
