import type { Context, Middleware } from 'koa';
import type { Operation } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';

/**
 * Paths without a parameter, by the methods they take. `/media/presign` is a path of its own, though `/media/{id}` matches
 * it too: a method that it does not take is 405 there, and never a question about the medium `presign`.
 */
export type FixedPaths = ReadonlyMap<string, readonly string[]>;

export const fixedPathsOf = (operations: readonly Operation[]): FixedPaths => {
  const fixed = operations.filter(({ path }) => !path.includes('{'));
  const byPath = Map.groupBy(fixed, ({ path }) => `/v1${path}`);
  return new Map(
    [...byPath].map(([path, all]) => [
      path,
      all.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method)),
    ]),
  );
};

const notAllowed = (allowed: readonly string[]): Refusal => {
  const allow = [...new Set(allowed), 'OPTIONS'].join(', ');
  return new Refusal('method_not_allowed', `This path takes ${allow}.`, { headers: { Allow: allow } });
};

/** @throws Refusal 405 where the path is another operation's own, though the pattern of this one matches it too */
export const requireOwnPath = ({ path }: Context, operation: Operation, fixedPaths: FixedPaths): void => {
  const own = fixedPaths.get(path);
  if (own !== undefined && `/v1${operation.path}` !== path) throw notAllowed([...own].sort());
};

interface Matched {
  readonly matched?: readonly { readonly methods: readonly string[] }[];
}

/** No operation has this method and path: 405 with Allow where the path has others, else 404. OPTIONS says which. */
export const unmatched =
  (fixedPaths: FixedPaths): Middleware =>
  async (ctx: Context & Matched) => {
    const allowed = fixedPaths.get(ctx.path) ?? (ctx.matched ?? []).flatMap(({ methods }) => methods);
    if (allowed.length === 0) throw new Refusal('not_found', 'There is no such path.');
    const refusal = notAllowed([...allowed].sort());
    if (ctx.method !== 'OPTIONS') throw refusal;
    ctx.status = 204;
    ctx.set('Allow', refusal.headers.Allow ?? '');
  };
