/** Accounts on the real server, connected as a guest connects them, and the calls that really leave. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { BlueskyAdapter, type BlueskyOptions, connectByAppPassword } from '#infra/platforms/bluesky/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryCredentials } from './memory-credentials.ts';
import type { Identity, Pds } from './pds.ts';

export const boundaryDeadlineMs = 1_500;

interface Write {
  readonly targetId: string | null;
  readonly key: string;
  readonly isReply: boolean;
}

/** Counts the writes that really leave. */
export class WatchedHttp implements NetworkHttp {
  readonly writes: Write[] = [];
  readonly calls: NetworkCall[] = [];
  readonly #http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));

  send(call: NetworkCall, signal: AbortSignal) {
    this.calls.push(call);
    if (call.url.endsWith('/com.atproto.repo.putRecord')) {
      const [body] = call.body;
      const { rkey, record } = JSON.parse(String(body)) as { rkey: string; record: { reply?: unknown } };
      this.writes.push({ targetId: call.subject.targetId, key: rkey, isReply: record.reply !== undefined });
    }
    return this.#http.send(call, signal);
  }
}

export const blueskyWorld = async (pds: Pds, more: Partial<BlueskyOptions> = {}) => {
  const http = new WatchedHttp();
  const credentials = new MemoryCredentials();
  const options: BlueskyOptions = { http, credentials, clock: () => Date.now(), boundaryDeadlineMs, ...more };
  const connectOptions = { http, resolver: pds.service, directory: pds.directory };
  const connected = async (identity: Identity, service: string = pds.service) => {
    const password = await pds.appPassword(identity);
    const signal = AbortSignal.timeout(10_000);
    const made = await connectByAppPassword(connectOptions, { handle: identity.handle, password }, signal);
    assert.ok(made.kind === 'connected', JSON.stringify(made));
    const account = { id: randomUUID(), ...made.profile };
    const [workspaceId, clientId] = [randomUUID(), randomUUID()];
    const owner = { accountId: account.id, workspaceId, clientId, platform: 'bluesky' } as const;
    await credentials.keep(owner, { ...made.credential, secret: { ...made.credential.secret, service } });
    return account;
  };
  const postsOf = async (did: string) => {
    const params = { repo: did, collection: 'app.bsky.feed.post', limit: '100' };
    const { records } = await pds.call('com.atproto.repo.listRecords', { params });
    return records as readonly { readonly uri: string; readonly value: Record<string, unknown> }[];
  };
  const adapter = new BlueskyAdapter(options);
  const request = (account: PublishRequest['account'], over: Partial<PublishRequest> = {}): PublishRequest => ({
    ...{
      workspaceId: randomUUID(),
      targetId: randomUUID(),
      attempt: 1,
      platform: 'bluesky',
      account,
      content: 'Good morning',
      overrides: {},
    },
    ...{ aiDisclosure: false, media: [], cover: null, coverFrameMs: null, thread: null, checkpoints: [], ...over },
  });
  const publish = async (asked: PublishRequest, prepare: (steps: RecordedSteps) => void = () => {}) => {
    const steps = new RecordedSteps(asked, boundaryDeadlineMs);
    prepare(steps);
    return { outcome: await adapter.publish(asked, steps), steps };
  };
  return { http, credentials, options, connectOptions, connected, postsOf, adapter, request, publish };
};

export type BlueskyWorld = Awaited<ReturnType<typeof blueskyWorld>>;
