/**
 * Bluesky of a fault world: the real server of its protocol, and before it a front that loses and refuses calls as a run asks
 * for. What is out is read from the server itself. The service that counts is simulated: the real server has none.
 */
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { credentialOf } from '#infra/platforms/bluesky/session.ts';
import type { Members } from '#infra/platforms/shared/members.ts';
import { startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import { type Identity, type Pds, startPds } from '#test/support/networks/pds.ts';
import type { Fault } from '#test/support/networks/x/index.ts';
import type { LiveNetwork, MadePost } from './live-kit.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
}

type Kind = 'accessJwt' | 'refreshJwt';

/** Answers as the server does to a token whose time is over (`com.atproto.server.getSession`: `ExpiredToken`). */
const expired = (): Answer => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify({ error: 'ExpiredToken', message: 'Token has expired' })),
});

class BlueskyFront {
  readonly faults: (Fault & { left: number })[] = [];
  readonly #behind: URL;
  readonly #server = createServer((message, response) => {
    this.#serve(message, response).catch(() => response.destroy());
  });
  /** Tokens that the server gave, by account and kind. */
  readonly #given = new Map<string, Record<Kind, string[]>>();
  readonly #ended = new Set<string>();
  readonly #late = new Set<NodeJS.Timeout>();

  constructor(behind: string) {
    this.#behind = new URL(behind);
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  /** Tokens of the account that were given until now end. */
  end(did: string, kinds: readonly Kind[]): void {
    for (const kind of kinds) for (const token of this.#given.get(did)?.[kind] ?? []) this.#ended.add(token);
  }

  close(): void {
    for (const timer of this.#late) clearTimeout(timer);
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(message);
    const send = ({ status, headers, body: said }: Answer): void => {
      response.writeHead(status, headers as Record<string, string>).end(said);
    };
    const act = (): Promise<Answer> => this.#act(message, body);
    const then = this.#met(message, body);
    if (then === null) return send(await act());
    if (typeof then === 'string') {
      if (then.endsWith('_after')) await act();
      if (then.startsWith('drop')) response.destroy();
      return;
    }
    if ('run' in then) {
      if (then.then === 'silent_after') await act();
      then.run();
      return then.then === 'act' ? send(await act()) : undefined;
    }
    if ('answerAfter' in then) await act();
    if ('lateMs' in then) this.#late.add(setTimeout(() => void act().catch(() => undefined), then.lateMs));
    const { status, body: said, headers = {} } = 'answerAfter' in then ? then.answerAfter : then.answer;
    send({
      ...{ status, headers: { 'content-type': 'application/json', ...headers } },
      body: Buffer.from(JSON.stringify(said)),
    });
  }

  /** The fault that this call meets; it is spent. */
  #met({ method, url = '' }: IncomingMessage, body: Buffer): Fault['then'] | null {
    const route = `${method} ${new URL(url, 'http://front').pathname.replace('/xrpc/', '')}`;
    const said = `${decodeURIComponent(url)}\n${body.toString('utf8')}`;
    const fault = this.faults.find(
      (one) => one.left > 0 && one.route === route && (one.says === undefined || said.includes(one.says)),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }

  async #act(message: IncomingMessage, body: Buffer): Promise<Answer> {
    const { method, url = '', headers } = message;
    if (this.#ended.has(headers.authorization?.replace(/^Bearer /, '') ?? '')) return expired();
    const { hostname, port, host } = this.#behind;
    const answer = await new Promise<Answer>((resolve, reject) => {
      const asked = requestOf(
        { hostname, port, method, path: url, headers: { ...headers, host } },
        async (answered) => {
          resolve({
            ...{ status: answered.statusCode ?? 502, headers: answered.headers, body: await buffer(answered) },
          });
        },
      );
      asked.once('error', reject).end(body);
    });
    if (answer.status === 200 && /\.(?:create|refresh)Session$/.test(url)) this.#note(answer.body);
    return answer;
  }

  #note(body: Buffer): void {
    const { did, ...tokens } = JSON.parse(body.toString('utf8')) as Record<Kind | 'did', string>;
    const given = this.#given.get(did) ?? { accessJwt: [], refreshJwt: [] };
    for (const kind of ['accessJwt', 'refreshJwt'] as const) given[kind].push(tokens[kind]);
    this.#given.set(did, given);
  }
}

/** All that the repository of the account has. */
const postsOf = async (pds: Pds, did: string): Promise<readonly MadePost[]> => {
  const made: MadePost[] = [];
  for (let cursor: string | undefined; ; ) {
    const params = { repo: did, collection: 'app.bsky.feed.post', limit: '100', ...(cursor && { cursor }) };
    const page = (await pds.call('com.atproto.repo.listRecords', { params })) as {
      readonly cursor?: string;
      readonly records: readonly {
        readonly uri: string;
        readonly value: {
          readonly text: string;
          readonly reply?: { readonly parent: { readonly uri: string } };
          readonly embed?: { readonly images?: readonly unknown[] };
        };
      }[];
    };
    for (const { uri, value } of page.records)
      made.push({
        ...{ of: did, externalId: uri, text: value.text, replyTo: value.reply?.parent.uri ?? null },
        files: value.embed?.images?.length ?? 0,
      });
    cursor = page.cursor;
    if (page.records.length === 0 || cursor === undefined) return made;
  }
};

export const liveBluesky = async (): Promise<LiveNetwork> => {
  const pds = await startPds();
  const services = await startBlueskyServices(pds);
  const front = await new BlueskyFront(pds.service).start();
  const owners = new Map<string, Identity>();
  let made: readonly MadePost[] = [];
  return {
    origin: front.origin,
    others: [pds.service, pds.directory, services.origin],
    env: { BLUESKY_RESOLVER: pds.service, BLUESKY_DIRECTORY: pds.directory, BLUESKY_APP_VIEW: services.origin },
    account: async () => {
      const owner = await pds.identity();
      owners.set(owner.did, owner);
      return owner.did;
    },
    credential: async (did) => {
      const owner = owners.get(did);
      if (owner === undefined) throw new Error(`nobody is ${did}`);
      const input = { identifier: did, password: await pds.appPassword(owner) };
      const answer = await fetch(`${front.origin}/xrpc/com.atproto.server.createSession`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) },
      });
      const credential = credentialOf(front.origin, (await answer.json()) as Members);
      if (credential === null) throw new Error(`the server opens no session: ${answer.status}`);
      return credential;
    },
    lapse: (did, forGood) => front.end(did, forGood ? ['accessJwt', 'refreshJwt'] : ['accessJwt']),
    script: (fault) => void front.faults.push({ ...fault, left: fault.times ?? 1 }),
    calm: () => void front.faults.splice(0),
    read: async () => {
      made = (await Promise.all([...owners.keys()].map((did) => postsOf(pds, did)))).flat();
    },
    posts: () => made,
    close: () => {
      front.close();
      services.close();
    },
  };
};
