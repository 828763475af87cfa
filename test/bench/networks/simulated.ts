/**
 * X, Telegram, Bluesky, Threads and LinkedIn for a bench, in a process of their own, and a server that answers after 20 s. Its
 * first message names their addresses and the accounts they have; any message to it is answered with the posts that were made.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { startThreads } from '#test/support/networks/threads/index.ts';
import { type Person, startX } from '#test/support/networks/x/index.ts';

export type SimulatedPlatform = 'x' | 'telegram' | 'bluesky' | 'threads' | 'linkedin';

export interface SimulatedAccount {
  /** On the network. */
  readonly externalId: string;
  readonly secret: NewCredential['secret'];
}

export interface Simulated {
  readonly accounts: Readonly<Record<SimulatedPlatform, readonly SimulatedAccount[]>>;
  /** Settings of an installation that talks to them. */
  readonly env: Readonly<Record<string, string>>;
  readonly slow: string;
}

/** Milliseconds after which the slow server answers. */
const slowMs = 20_000;
/** Channels of one bot. */
const perBot = 20;

const listening = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** A personal data server that takes posts (com.atproto.repo.putRecord) and nothing else. */
const startBluesky = async () => {
  const posts: string[] = [];
  const origin = await listening(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const isWrite = request.url === '/xrpc/com.atproto.repo.putRecord' && request.headers.authorization !== undefined;
    response.writeHead(isWrite ? 200 : 501, { 'content-type': 'application/json' });
    if (!isWrite) {
      response.end('{"error":"MethodNotImplemented","message":"Method Not Implemented"}');
      return;
    }
    const { repo, collection, rkey } = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    const uri = `at://${repo}/${collection}/${rkey}`;
    posts.push(uri);
    response.end(JSON.stringify({ uri, cid: 'bafyreib2rxk3rybk3aobmv5cjuql3bm2twh4jo5uxgf5kpqcsgz7soitae' }));
  });
  return { origin, posts };
};

const [x, telegram, bluesky] = [await startX(), await TelegramSimulator.start(), await startBluesky()];
const [threads, linkedin] = [await startThreads(), await startLinkedIn()];
const slow = await listening((request, response) => {
  request.resume();
  setTimeout(() => response.end('{}'), slowMs);
});

const each = <T>(make: (at: number) => T): readonly T[] =>
  Array.from({ length: Number(process.argv[2] ?? 0) }, (_, at) => make(at));
const accessUntil = new Date(Date.now() + 7_200_000).toISOString();
const accessFrom = new Date().toISOString();
const xAccount = (person: Person): SimulatedAccount => ({
  externalId: person.id,
  secret: { ...x.grant(person), accessUntil },
});
let bot = telegram.bot();
const simulated: Simulated = {
  slow,
  env: {
    ...{ X_API: x.origin, X_CLIENT_ID: 'app-id', X_CLIENT_SECRET: 'app:secret', TELEGRAM_API: telegram.origin },
    ...{ THREADS_API: threads.origin, THREADS_CLIENT_ID: threads.state.app.clientId },
    ...{ THREADS_CLIENT_SECRET: threads.state.app.clientSecret, ...linkedin.env, LINKEDIN_APP_BUDGET: '1000000' },
  },
  accounts: {
    x: each(() => xAccount(x.person())),
    telegram: each((at) => {
      if (at % perBot === 0) bot = telegram.bot();
      const chatId = String(telegram.chat().id);
      return { externalId: chatId, secret: { botToken: bot.token, chatId } };
    }),
    bluesky: each((at) => {
      const did = `did:plc:${String(at).padStart(24, 'a')}`;
      const tokens = { accessJwt: 'access', refreshJwt: 'refresh', accessUntil };
      return { externalId: did, secret: { service: bluesky.origin, did, ...tokens } };
    }),
    threads: each(() => {
      const person = threads.person();
      return { externalId: person.id, secret: { accessToken: threads.grant(person), accessFrom, accessUntil } };
    }),
    linkedin: each(() => {
      const person = linkedin.person();
      const externalId = `urn:li:organization:${linkedin.organization(person).id}`;
      return { externalId, secret: { ...linkedin.grant(person), accessUntil } };
    }),
  },
};
process.on('message', () => {
  const refused = x.state.creates.filter(({ postId }) => postId === null).length;
  const made = [x.state.posts, telegram.ledger, bluesky.posts, threads.state.posts, linkedin.state.posts];
  process.send?.({ posts: made.reduce((sum, { length }) => sum + length, 0), refused });
});
process.on('disconnect', () => process.exit());
process.send?.(simulated);
