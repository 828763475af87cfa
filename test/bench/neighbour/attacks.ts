/**
 * The worst possible tenant, and strangers beside it, in their own process: bodies of wrong items, content types that
 * made patterns run wild, searches in long drafts, a draft that grows without end, scraped metrics, invalid tokens.
 * Each at the rate that the production limits allow one credential. Run as a program this file is that process.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

export interface Attacked {
  readonly port: number;
  /** Keys of the attacking tenant, one for each attack at least. */
  readonly keys: readonly string[];
  readonly clientId: string;
  /** Drafts of 50,000 characters to search in. */
  readonly drafts: number;
  /** Share of the full rate of each attack; default 1. */
  readonly pace?: number;
}

/** Number of answers by request and status. */
export type Tally = Readonly<Record<string, Readonly<Record<string, number>>>>;

export class Attackers {
  readonly #child: ChildProcess;

  /** Ready to attack: the drafts are there. */
  static async start(attacked: Attacked): Promise<Attackers> {
    const child = fork(import.meta.filename, [JSON.stringify(attacked)], { execArgv: [] });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the attackers ended')));
    ended.catch(() => undefined);
    await Promise.race([once(child, 'message'), ended]);
    return new Attackers(child);
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  begin(): void {
    this.#child.send('begin');
  }

  /** Resolves when none of their requests is under way. */
  async rest(): Promise<Tally> {
    const reported = once(this.#child, 'message');
    this.#child.send('rest');
    return (await reported)[0] as Tally;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

interface Attack {
  readonly name: string;
  readonly perSecond: number;
  /** @returns the status. */
  readonly once: () => Promise<number>;
}

/** Keys that search in turn: a search counts for ten requests. */
const searchers = 10;

/** Concurrent requests of one attack: an attacker that waits for all answers attacks nobody. */
const width = 4;

const attack = async ({ port, keys, clientId, drafts, pace = 1 }: Attacked): Promise<void> => {
  const origin = `http://127.0.0.1:${port}`;
  const ask = async (path: string, key: string, init: RequestInit = {}): Promise<Response> => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...(init.headers as Record<string, string> | undefined),
    };
    return fetch(`${origin}${path}`, { ...init, headers });
  };
  const status = async (asked: Promise<Response>): Promise<number> => {
    const answer = await asked;
    await answer.arrayBuffer();
    return answer.status;
  };
  const keyOf = (at: number): string => keys[at % keys.length] ?? '';
  const wrong = `{"targets":{"mode":"accounts","accountIds":[${'1,'.repeat(500_000)}1]}}`;
  const fewer = `{"targets":{"mode":"accounts","accountIds":[${'1,'.repeat(9_900)}1]}}`;
  const composed = (more: object): string =>
    JSON.stringify({
      clientId,
      saveDraft: true,
      targets: { mode: 'group', clientId },
      schedule: { type: 'now' },
      ...more,
    });
  const kept = 'a'.repeat(390 * 1024);
  let versions = 0;
  /** Never the same twice: a change without a difference stores nothing. */
  const large = (): string => {
    versions += 1;
    return composed({ variants: [{ platform: 'x', overrides: { versions, kept } }] });
  };
  const draft = async (key: string, body: string): Promise<string> => {
    const answer = await ask('/v1/posts', key, { method: 'POST', body });
    const { data } = (await answer.json()) as { data?: { id: string } };
    return data?.id ?? '';
  };
  let growing = '';
  let searched = 0;
  const all: readonly Attack[] = [
    {
      name: 'wrong items',
      perSecond: 5,
      once: () => status(ask('/v1/posts', keyOf(0), { method: 'POST', body: wrong })),
    },
    {
      name: 'many wrong items',
      perSecond: 5,
      once: () => status(ask('/v1/posts', keyOf(0), { method: 'POST', body: fewer })),
    },
    {
      name: 'content types',
      perSecond: 10,
      once: () =>
        status(
          ask('/v1/clients', keyOf(1), {
            method: 'POST',
            body: '{}',
            headers: { 'content-type': `application/json${' '.repeat(14_000)}x` },
          }),
        ),
    },
    {
      name: 'searches',
      perSecond: 10,
      once: () =>
        status(ask(`/v1/posts?search=${randomBytes(4).toString('hex')}`, keyOf(6 + (searched++ % searchers)))),
    },
    {
      name: 'a draft without end',
      perSecond: 10,
      once: async () => {
        return status(ask(`/v1/posts/${growing}`, keyOf(3), { method: 'PATCH', body: large() }));
      },
    },
    { name: 'metrics', perSecond: 10, once: () => status(ask('/metrics', keyOf(5))) },
    { name: 'readiness', perSecond: 10, once: () => status(ask('/readyz', keyOf(5))) },
    {
      name: 'strangers',
      perSecond: 50,
      once: () => status(ask('/v1/agency', `sk_test_${randomBytes(24).toString('base64url')}`)),
    },
    { name: 'files of strangers', perSecond: 20, once: () => status(ask(`/blobs/${randomUUID()}`, '')) },
  ];
  // For looking into one attack alone.
  const only = process.env.ATTACKS?.split(',');
  const attacks = all.filter(({ name }) => only?.includes(name) ?? true);
  const content = (n: number): string => `${n} ${'lorem ipsum dolor sit amet '.repeat(1_850)}`.slice(0, 50_000);
  let seeded = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (seeded < drafts) await draft(keyOf(seeded++), composed({ content: content(seeded) }));
    }),
  );
  let tally: Record<string, Record<string, number>> = {};
  let over = new AbortController();
  const loops: Promise<unknown>[] = [];
  const run = async ({ name, perSecond, once: work }: Attack, signal: AbortSignal): Promise<void> => {
    const under = new Set<Promise<void>>();
    while (!signal.aborted) {
      if (under.size < width) {
        const one = work()
          .catch(() => 0)
          .then((answered) => {
            const seen = tally[name] ?? {};
            tally[name] = { ...seen, [answered]: (seen[answered] ?? 0) + 1 };
            under.delete(one);
          });
        under.add(one);
      }
      await delay(1_000 / (perSecond * pace));
    }
    await Promise.all(under);
  };
  process.on('message', async (word) => {
    if (word === 'begin') {
      tally = {};
      // Another draft for each attack: a full one is refused.
      growing = await draft(keyOf(4), large());
      over = new AbortController();
      loops.push(...attacks.map((one) => run(one, over.signal)));
    } else if (word === 'rest') {
      over.abort();
      await Promise.all(loops.splice(0));
      process.send?.(tally);
    }
  });
  process.send?.('ready');
};

if (import.meta.main) {
  process.once('disconnect', () => process.exit());
  await attack(JSON.parse(process.argv[2] ?? '') as Attacked);
}
