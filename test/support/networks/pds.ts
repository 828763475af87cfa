/**
 * The real personal data server, `@atproto/pds`, for tests. It is installed once, on demand, into a cache outside of the
 * project: with its directory of identities it has 386 MB, which nobody who only runs the product should pay.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MissingTool, run } from '#contracts/sdk/shell.ts';
import { freePort } from '#test/support/port.ts';
import { serverOfRun } from '#test/support/run-servers.ts';

const versions = { '@atproto/pds': '0.5.35', '@did-plc/server': '0.0.1' };
/** The version that the server wants aborts on this Node. */
const overrides = { 'better-sqlite3': '13.2.0' };

const cacheOf = (): string => process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');

/** Milliseconds for the installation; a file has 360 s until its first test. */
const installMs = 300_000;

const isReady = (folder: string): boolean => existsSync(path.join(folder, 'ready'));

/** Several files need it at once, and one installation keeps both cores busy: the others wait for it. */
const holding = async <T>(folder: string, work: () => Promise<T>): Promise<T | null> => {
  const lock = `${folder}.lock`;
  mkdirSync(path.dirname(folder), { recursive: true });
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch {
      if (isReady(folder)) return null;
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      // Whoever made it has died.
      if (age > installMs) rmSync(lock, { recursive: true, force: true });
      await delay(200);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
};

const install = async (folder: string): Promise<void> => {
  if (isReady(folder)) return;
  const made = `${folder}.${process.pid}`;
  mkdirSync(made, { recursive: true });
  writeFileSync(path.join(made, 'package.json'), JSON.stringify({ private: true, dependencies: versions, overrides }));
  const log = path.join(made, 'install.log');
  const args = ['install', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', args, { cwd: made, log, within: installMs }).catch((error: Error) => {
    rmSync(made, { recursive: true, force: true });
    throw new MissingTool(`@atproto/pds could not be installed: ${error.message}`);
  });
  writeFileSync(path.join(made, 'ready'), '');
  renameSync(made, folder);
};

/** @returns the folder of its packages. @throws MissingTool where no registry answers */
const installed = async (): Promise<string> => {
  const folder = path.join(cacheOf(), 'postline', `pds-${versions['@atproto/pds']}-${process.versions.modules}`);
  if (!isReady(folder)) await holding(folder, () => install(folder));
  return folder;
};

export interface Identity {
  readonly did: string;
  readonly handle: string;
  readonly password: string;
  readonly accessJwt: string;
}

type Data = Record<string, unknown>;

/** Where a server is. */
export interface PdsPlace {
  readonly service: string;
  /** Of identities, `did:plc`. */
  readonly directory: string;
  /** Takes documents of clients. */
  readonly documents: string;
  /** Signs its tokens. */
  readonly jwtSecret: string;
}

export interface Pds extends PdsPlace {
  call(nsid: string, ask?: { params?: Record<string, string>; input?: unknown; auth?: string }): Promise<Data>;
  identity(name?: string): Promise<Identity>;
  /** An app password of the identity. */
  appPassword(identity: Identity): Promise<string>;
  /** Lets the server read a document of a client at an address that is nobody's. */
  publish(url: string, document: unknown): Promise<void>;
  readonly adminAuth: string;
}

let shared: Promise<Pds> | undefined;

/**
 * The server of the run, else of this process, for all of its files: a start costs two seconds of a core, and nobody sees
 * another's identities. @throws MissingTool where it cannot be installed
 */
export const sharedPds = (): Promise<Pds> => {
  shared ??= installed()
    .then(() => serverOfRun<PdsPlace>('pds'))
    .then((place) => (place === null ? startPds() : pdsAt(place)));
  return shared;
};

/**
 * One of its own. It ends with this process.
 * @param limits whether it counts what a caller does, as public servers do
 * @throws MissingTool where it cannot be installed
 */
export const startPds = async ({ limits = false }: { readonly limits?: boolean } = {}): Promise<Pds> => {
  const packages = await installed();
  // Another program may take one of its two ports first.
  for (let tries = 1; ; tries += 1) {
    try {
      return pdsAt(await begun(packages, limits));
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
};

const begun = async (packages: string, limits: boolean): Promise<PdsPlace> => {
  const data = mkdtempSync(path.join(tmpdir(), 'postline-pds-'));
  const ports = [await freePort(), await freePort()];
  const jwtSecret = randomBytes(16).toString('hex');
  const child = fork(path.join(import.meta.dirname, 'pds-child.mjs'), [packages, data, ...ports.map(String)], {
    env: { ...process.env, PDS_TEST_JWT_SECRET: jwtSecret, PDS_TEST_LIMITS: String(limits), NODE_OPTIONS: '' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  process.once('exit', () => {
    child.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true });
  });
  const reported = await Promise.race([
    once(child, 'message').then(([message]) => message as Omit<PdsPlace, 'jwtSecret'>),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${code}`))),
  ]);
  // It must not keep us alive.
  child.unref();
  child.channel?.unref();
  return { ...reported, jwtSecret };
};

const pdsAt = (place: PdsPlace): Pds => {
  const call: Pds['call'] = async (nsid, { params, input, auth } = {}) => {
    const query = params === undefined ? '' : `?${new URLSearchParams(params)}`;
    const answer = await fetch(`${place.service}/xrpc/${nsid}${query}`, {
      method: input === undefined ? 'GET' : 'POST',
      headers: {
        ...(input === undefined ? {} : { 'content-type': 'application/json' }),
        ...(auth === undefined ? {} : { authorization: auth }),
      },
      ...(input === undefined ? {} : { body: JSON.stringify(input) }),
    });
    const text = await answer.text();
    const body = (text === '' ? {} : JSON.parse(text)) as Data;
    if (!answer.ok) throw new Error(`${nsid}: ${answer.status} ${text}`);
    return body;
  };
  const identity = async (name = `u${randomBytes(5).toString('hex')}`): Promise<Identity> => {
    const handle = `${name}.test`;
    const password = randomBytes(12).toString('hex');
    const input = { handle, password, email: `${name}@example.com` };
    const { did, accessJwt } = await call('com.atproto.server.createAccount', { input });
    return { did: String(did), handle, password, accessJwt: String(accessJwt) };
  };
  const appPassword = async ({ accessJwt }: Identity): Promise<string> => {
    const input = { name: randomBytes(4).toString('hex') };
    const made = await call('com.atproto.server.createAppPassword', { input, auth: `Bearer ${accessJwt}` });
    return String(made.password);
  };
  const adminAuth = `Basic ${Buffer.from('admin:admin').toString('base64')}`;
  const publish = async (url: string, document: unknown): Promise<void> => {
    const taken = await fetch(`${place.documents}/${url}`, { method: 'POST', body: JSON.stringify(document) });
    if (!taken.ok) throw new Error(`the document of ${url} was not taken: ${taken.status}`);
  };
  return { ...place, call, identity, appPassword, publish, adminAuth };
};
