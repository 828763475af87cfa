/** Live accounts of a fault world: their owners, who consent again whenever one lapses, and the load on them. */
import { setTimeout as delay } from 'node:timers/promises';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import type { Operator } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import type { Random } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import type { Live } from './check-live.ts';
import { insist } from './insist.ts';
import { LiveLoad } from './live-load.ts';
import { type LiveNetworks, longClip, picture } from './live-networks.ts';
import type { Load } from './load.ts';

export interface LiveAccountsOptions {
  readonly networks: LiveNetworks;
  readonly operator: Operator;
  readonly adapters: Pick<Adapters, 'credentials' | 'blobs'>;
  readonly load: Load;
  /** A live key. */
  readonly token: string;
  readonly workspaceId: string;
  readonly random: Random;
  readonly tag: string;
}

/** Milliseconds from one look at the accounts to the next. */
const looksMs = 1_500;

export class LiveAccounts {
  readonly #options: LiveAccountsOptions;
  #load: LiveLoad | null = null;
  #clientId = '';

  constructor(options: LiveAccountsOptions) {
    this.#options = options;
  }

  get networks(): LiveNetworks {
    return this.#options.networks;
  }

  get load(): LiveLoad {
    if (this.#load === null) throw new Error('the live accounts are not connected yet');
    return this.#load;
  }

  get violations(): readonly string[] {
    return this.#load?.violations ?? [];
  }

  get checked(): Live {
    const { networks, workspaceId } = this.#options;
    return { workspaceId, accounts: networks.accounts, read: () => networks.read(), posts: () => networks.posts() };
  }

  /** A client with its accounts, and files that every live network takes unchanged. */
  async prepare(): Promise<void> {
    const { networks, operator, adapters, load, token, workspaceId, random, tag } = this.#options;
    const { credentials, blobs } = adapters;
    const body = { name: `live-${tag}`, type: 'brand' };
    const made = await load.call('POST', '/clients', body, `live-client-${tag}`, token);
    if (made.status !== 200) throw new Error(`the client was refused: ${made.status} ${made.code}`);
    this.#clientId = made.data.id;
    await networks.connect(operator, credentials, { workspaceId, clientId: this.#clientId });
    const probe = { width: 720, height: 1_280, durationMs: 5_000, frames: 150 };
    const film = await readyAsset(operator.store, workspaceId, 'video', { body: longClip(), blobs, probe });
    const pictures = await Promise.all(
      ['one', 'two', 'three'].map((name) =>
        readyAsset(operator.store, workspaceId, 'image', {
          body: picture(name),
          blobs,
          altText: name,
        }),
      ),
    );
    await until('the live accounts show', async () => {
      const { data } = await load.call(
        'GET',
        `/accounts?clientId=${this.#clientId}&limit=100`,
        undefined,
        undefined,
        token,
      );
      return (data as unknown as readonly unknown[]).length === networks.accounts.length;
    });
    this.#load = new LiveLoad({
      ...{ load, networks, token, random, clientId: this.#clientId },
      ...{ videoId: film.id, imageIds: pictures.map(({ id }) => id) },
    });
  }

  /** The owner of each account that lapsed consents again, until the signal aborts. */
  async keepConsenting(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#consent();
      await delay(looksMs);
    }
  }

  async #consent(): Promise<void> {
    const { networks, operator, adapters, workspaceId } = this.#options;
    for (const one of networks.accounts) {
      const { state } = await insist(() => operator.store.load(account, one.id));
      if (state.status !== 'reauth_required') continue;
      const owned = { workspaceId, clientId: this.#clientId };
      await insist(() => networks.consent(operator, adapters.credentials, owned, one));
    }
  }

  close(): void {
    this.networks.close();
  }
}
