import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Pool } from 'pg';
import type { Logger } from '#runtime/process/telemetry.ts';
import { hashOf } from './tables.ts';

/**
 * The processes of one agent share a refresh token: several of them spend it at the same moment, and each needs the
 * answer. For ten seconds the same client gets the answer of the first use again. A row keeps it encrypted under a key
 * from the token itself, so that only who presents the token can read it.
 */

/** Uses of one token, the first one included. */
const maxUses = 5;
const graceSeconds = 10;
/** Milliseconds that a second use waits for the answer of the first, and between two looks. */
const waitMs = 2_000;
const lookMs = 25;

export const repeatModel = 'RefreshAnswer';

const keyOf = (token: string): Buffer =>
  Buffer.from(hkdfSync('sha256', token, Buffer.alloc(0), 'postline/refresh answer', 32));

const seal = (token: string, clientId: string, text: string): string => {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keyOf(token), nonce).setAAD(Buffer.from(clientId));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
};

const open = (token: string, clientId: string, sealed: string): string => {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', keyOf(token), bytes.subarray(0, 12)).setAAD(Buffer.from(clientId));
  decipher.setAuthTag(bytes.subarray(12, 28));
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
};

interface Request {
  readonly token: string;
  readonly clientId: string;
  /** What the request asked for beside the token: another question has another answer. */
  readonly asked: string;
}

/** Of a request at the token endpoint, after its client was authenticated; null where it presents no refresh token. */
const requestOf = ({ oidc }: KoaContextWithOIDC): Request | null => {
  const { grant_type: type, refresh_token: token, scope, resource } = oidc.params ?? {};
  const clientId = oidc.client?.clientId;
  if (type !== 'refresh_token' || typeof token !== 'string' || clientId === undefined) return null;
  return { token, clientId, asked: JSON.stringify([scope ?? null, resource ?? null]) };
};

export class Repeats {
  readonly #pool: Pool;
  readonly #logger: Pick<Logger, 'info'>;
  readonly #onRepeat: () => void;
  readonly #answers = new WeakMap<object, string>();

  /** @param onRepeat called when an answer was given again */
  constructor(pool: Pool, logger: Pick<Logger, 'info'>, onRepeat: () => void) {
    this.#pool = pool;
    this.#logger = logger;
    this.#onRepeat = onRepeat;
  }

  /**
   * Keeps the answer of the first use, as text, until ten seconds after the token was spent. If we die before it, a
   * second use finds no answer and ends the family.
   */
  async keep(ctx: KoaContextWithOIDC, answer: string): Promise<void> {
    const request = requestOf(ctx);
    if (request === null) return;
    const { token, clientId, asked } = request;
    const payload = { asked, uses: 1, sealed: seal(token, clientId, answer) };
    // Nothing where the family has ended meanwhile.
    await this.#pool.query({
      name: 'oauth-keep-answer',
      text: `insert into auth.oauth_artifacts (model, id_hash, payload, grant_id, client_id, expires_at)
        select $1, id_hash, $2, grant_id, client_id, consumed_at + interval '${graceSeconds} seconds'
        from auth.oauth_artifacts where model = 'RefreshToken' and id_hash = $3
        on conflict do nothing`,
      values: [repeatModel, payload, hashOf(token)],
    });
  }

  /**
   * Whether a token that was spent already gets the answer of its first use: the request is answered with it. It waits
   * for a first use that is under way.
   */
  async allows(ctx: KoaContextWithOIDC): Promise<boolean> {
    const request = requestOf(ctx);
    if (request === null) return false;
    for (const until = performance.now() + waitMs; ; await delay(lookMs)) {
      const found = await this.#take(request);
      if (found === 'none' || (found === 'not yet' && performance.now() > until)) return false;
      if (found === 'not yet') continue;
      this.#answers.set(ctx.req, open(request.token, request.clientId, found.sealed));
      const { grantId, uses } = found;
      this.#logger.info({ grantId, app: request.clientId, use: uses }, 'a refresh token was used again at once');
      this.#onRepeat();
      return true;
    }
  }

  /** The answer that a repeat gets; null: the request is no repeat. */
  answerOf(ctx: KoaContextWithOIDC): string | null {
    return this.#answers.get(ctx.req) ?? null;
  }

  /** Counts a use. `not yet`: the token was spent a moment ago, and its answer is not there. */
  async #take({
    token,
    clientId,
    asked,
  }: Request): Promise<
    { readonly sealed: string; readonly grantId: string; readonly uses: number } | 'none' | 'not yet'
  > {
    const { rows } = await this.#pool.query<{
      sealed: string | null;
      grant_id: string;
      uses: number;
      kept: boolean;
      is_fresh: boolean;
    }>({
      name: 'oauth-take-answer',
      text: `with used as (
          update auth.oauth_artifacts
          set payload = jsonb_set(payload, '{uses}', to_jsonb((payload ->> 'uses')::int + 1))
          where model = $1 and id_hash = $2 and client_id = $3 and payload ->> 'asked' = $4
            and expires_at > now() and (payload ->> 'uses')::int < ${maxUses}
          returning payload, grant_id
        )
        select used.payload ->> 'sealed' as sealed, t.grant_id::text, (used.payload ->> 'uses')::int as uses,
          exists (select 1 from auth.oauth_artifacts where model = $1 and id_hash = $2) as kept,
          t.consumed_at > now() - interval '${graceSeconds} seconds' as is_fresh
        from auth.oauth_artifacts t left join used on true
        where t.model = 'RefreshToken' and t.id_hash = $2 and t.client_id = $3`,
      values: [repeatModel, hashOf(token), clientId, asked],
    });
    const [row] = rows;
    if (row === undefined) return 'none';
    const { sealed, grant_id: grantId, uses, kept, is_fresh: isFresh } = row;
    if (sealed !== null) return { sealed, grantId, uses };
    return isFresh && !kept ? 'not yet' : 'none';
  }
}
