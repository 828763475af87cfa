/** Adapters of Pinterest on a simulated Pinterest, as the tests use them. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AppLimits } from '#contracts/ports/app-limits.ts';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type {
  CommentRequest,
  OnLimits,
  PlatformAdapter,
  PublishMedia,
  PublishRequest,
} from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { NetworkClient } from '#infra/platforms/kit/client.ts';
import { type Bound, type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import { pinterestNetwork } from '#infra/platforms/pinterest/index.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { type Board, type Person, type PinterestNetwork, startPinterest } from './index.ts';
import type { PinterestOptions } from './state.ts';

export const appOf = (network: PinterestNetwork): NetworkApp => ({
  ...{ id: network.state.app.clientId, secret: network.state.app.clientSecret, version: null, monthlyReads: null },
  addresses: { api: network.api, authorize: network.authorize },
});

export interface PinterestWorld extends KitNetwork {
  readonly network: PinterestNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly appLimits: AppLimits;
  /** Milliseconds of each wait that the adapter asked for; none is waited. */
  readonly pauses: number[];
  readonly connector: ConsentConnector;
  /** What the adapter's own functions work with. */
  readonly bound: Bound;
  /** Another worker's, on the same network. */
  another(over?: Partial<WorldTools>, app?: Partial<NetworkApp>): KitNetwork;
  account(person?: Person, scopes?: readonly string[]): Promise<CommentRequest['account'] & InsightsAccount>;
  /** Of a board that the account owns. */
  boardOf(account: Pick<PublishRequest['account'], 'externalId'>): Board;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
}

interface WorldTools {
  readonly credentials: CredentialStore;
  readonly onLimits: OnLimits;
  readonly clock: () => number;
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Undefined: that of the network. */
  readonly boundaryDeadlineMs: number | undefined;
}

export const pinterestWorld = async (
  options: PinterestOptions = {},
  over: Partial<WorldTools> = {},
): Promise<PinterestWorld> => {
  const network = await startPinterest(options);
  const http = new TaggedHttp();
  const credentials = new MemoryCredentials();
  const appLimits = new MemoryAppLimits();
  const pauses: number[] = [];
  const tools = {
    ...{
      http,
      credentials,
      appLimits,
      clock: () => network.state.now(),
      boundaryDeadlineMs: 1_500 as number | undefined,
    },
    pause: async (ms: number) => void pauses.push(ms),
    ...over,
  };
  const another: PinterestWorld['another'] = (more = {}, app = {}) => {
    const { boundaryDeadlineMs, ...all } = { ...tools, ...more };
    return networkOf(
      pinterestNetwork,
      { ...all, ...(boundaryDeadlineMs === undefined ? {} : { boundaryDeadlineMs }) },
      { ...appOf(network), ...app },
    );
  };
  const kit = { ...tools, boundaryDeadlineMs: 1_500, tables: pinterestNetwork.tables, app: appOf(network) };
  const first = another();
  const [connector] = first.connectors;
  if (connector === undefined) throw new Error('Pinterest has no way to connect');
  const boards = new Map<string, Board>();
  const boardOf: PinterestWorld['boardOf'] = ({ externalId }) => {
    const owner = network.state.people.get(externalId);
    if (owner === undefined) throw new Error(`nobody is ${externalId}`);
    const board = boards.get(externalId) ?? network.board(owner);
    boards.set(externalId, board);
    return board;
  };
  return {
    ...first,
    ...{ network, http, credentials, appLimits, pauses, connector, another, boardOf },
    bound: { ...kit, client: new NetworkClient(kit) },
    account: async (person = network.person(), scopes = undefined) => {
      const accessUntil = new Date(network.state.now() + 30 * 86_400_000).toISOString();
      const secret = { ...network.grant(person, scopes), accessUntil };
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'pinterest' as const };
      const { id: externalId, username } = person;
      const { workspaceId } = owner;
      const account = { id: randomUUID(), workspaceId, externalId, username, scopes: scopes ?? [] };
      await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null });
      return account;
    },
    request: (account, { overrides, ...more } = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'pinterest', account },
      ...{ content: 'Good morning', overrides: overrides ?? { boardId: boardOf(account).id }, aiDisclosure: false },
      ...{ media: [], cover: null, coverFrameMs: null, thread: null, checkpoints: [], ...more },
    }),
    publish: async (request, by = first.adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
  };
};

/** The next attempt after one whose call made nothing, as the publisher asks for it. */
export const afterNothing = (request: PublishRequest, { checkpoints }: RecordedSteps): PublishRequest => ({
  ...request,
  attempt: request.attempt + 1,
  checkpoints: checkpoints.map((one) => (one.step === 'boundary' ? { ...one, madeNothing: true } : one)),
});

/** The beginning of a PNG, in which a network finds the size. */
export const pngOf = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(40);
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1');
  bytes.writeUInt32BE(13, 8);
  bytes.write('IHDR', 12, 'latin1');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
};

/** The beginning of an MP4, behind which nothing but zeros is. */
export const mp4Of = (bytes: number): Buffer => {
  const all = Buffer.alloc(bytes);
  all.write('\0\0\0\x18ftypmp42', 'latin1');
  return all;
};

export interface HeldFiles {
  /** A PNG. */
  picture(over?: Partial<PublishMedia>, size?: readonly [width: number, height: number]): PublishMedia;
  /** An MP4. @param bytes default 2,000 */
  video(over?: Partial<PublishMedia>, bytes?: number): PublishMedia;
  /** Where these bytes are under that name. */
  save(name: string, bytes: Buffer): string;
  remove(): void;
}

/** Files on this machine, as an installation lends them that has no address of its own. */
export const heldFiles = (): HeldFiles => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pinterest-'));
  const held = (bytes: Buffer, over: Partial<PublishMedia> & Pick<PublishMedia, 'kind' | 'contentType'>) => {
    const mediaId = randomUUID();
    const file = path.join(folder, mediaId);
    writeFileSync(file, bytes);
    return {
      ...{ mediaId, use: 'feed', bytes: bytes.length, width: 1_000, height: 1_500, durationMs: null, altText: null },
      sha256: createHash('sha256').update(bytes).digest('hex'),
      ...{ file: async () => file, url: async () => `http://localhost:8080/v1/media/blobs/${mediaId}` },
      ...over,
    } satisfies PublishMedia;
  };
  return {
    picture: (over = {}, [width, height] = [1_000, 1_500]) =>
      held(pngOf(width, height), { kind: 'image', contentType: 'image/png', ...over }),
    video: (over = {}, bytes = 2_000) => held(mp4Of(bytes), { kind: 'video', contentType: 'video/mp4', ...over }),
    save: (name, bytes) => {
      writeFileSync(path.join(folder, name), bytes);
      return path.join(folder, name);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
