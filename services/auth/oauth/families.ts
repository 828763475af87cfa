import type { GrantEnder } from '#schemas/grant.ts';
import { type RevokeDeps, revokeGrant } from '../grants.ts';

/** A grant with its codes and refresh tokens: they end together. */
export class Families {
  readonly #deps: RevokeDeps;
  readonly #ending = new Map<string, Promise<void>>();
  readonly #onReuse: (grantId: string) => void;

  /** @param onReuse called when a code or a token that was spent already has ended a grant */
  constructor(deps: RevokeDeps, onReuse: (grantId: string) => void) {
    this.#deps = deps;
    this.#onReuse = onReuse;
  }

  /** oidc-provider ends every part of a family at once: the first call does all of it, and the others wait for it. */
  end(grantId: string, by: GrantEnder): Promise<void> {
    const known = this.#ending.get(grantId);
    if (known !== undefined) return known;
    const ending = this.#end(grantId, by).finally(() => this.#ending.delete(grantId));
    this.#ending.set(grantId, ending);
    return ending;
  }

  async #end(grantId: string, by: GrantEnder): Promise<void> {
    const ended = await revokeGrant(this.#deps, grantId, by);
    if (ended && by === 'reuse') this.#onReuse(grantId);
  }
}
