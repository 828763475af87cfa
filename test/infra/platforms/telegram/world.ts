/** Accounts of the simulated network, and the adapter over real HTTP. */
import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { TelegramAdapter } from '#infra/platforms/telegram/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';

export const boundaryDeadlineMs = 1_500;

/** Names the target to the ledger of the simulator. */
class Named implements NetworkHttp {
  readonly #http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));

  send(call: NetworkCall, signal: AbortSignal) {
    const headers = { ...call.headers, ...(call.subject.targetId ? { 'x-target': call.subject.targetId } : {}) };
    return this.#http.send({ ...call, headers }, signal);
  }
}

export const telegramWorld = async () => {
  const network = await TelegramSimulator.start();
  const credentials = new MemoryCredentials();
  const http = new Named();
  const options = {
    ...{ http, credentials, clock: () => Date.now(), boundaryDeadlineMs, api: network.origin },
    separator: () => 'separator-of-the-test',
    operatorToken: null as string | null,
  };
  /** @param bot null: the operator's */
  const account = async (chat: Chat, bot: Bot | null) => {
    const id = randomUUID();
    const owner = { accountId: id, workspaceId: randomUUID(), clientId: randomUUID(), platform: 'telegram' } as const;
    const secret = { ...(bot === null ? { operatorBot: true } : { botToken: bot.token }), chatId: String(chat.id) };
    await credentials.keep(owner, { secret, expiresAt: null });
    return { id, externalId: String(chat.id), username: chat.username ?? null, scopes: [] };
  };
  const adapter = new TelegramAdapter(options);
  const request = (who: PublishRequest['account'], over: Partial<PublishRequest> = {}): PublishRequest => ({
    ...{
      workspaceId: randomUUID(),
      targetId: randomUUID(),
      attempt: 1,
      platform: 'telegram',
      account: who,
      content: 'Good morning',
    },
    ...{ overrides: {}, aiDisclosure: false, media: [], cover: null, coverFrameMs: null, thread: null },
    ...{ checkpoints: [], ...over },
  });
  const publish = async (asked: PublishRequest, by = adapter) => {
    const steps = new RecordedSteps(asked, boundaryDeadlineMs);
    return { outcome: await by.publish(asked, steps), steps };
  };
  return { network, credentials, http, options, account, adapter, request, publish };
};

export const file = (kind: PublishMedia['kind'], body: string, over: Partial<PublishMedia> = {}): PublishMedia => {
  const place = path.join(mediaFolder(), randomUUID());
  writeFileSync(place, body);
  const contentType = { image: 'image/jpeg', video: 'video/mp4', gif: 'image/gif', document: 'application/pdf' }[kind];
  return {
    ...{ mediaId: randomUUID(), kind, use: 'feed', contentType, bytes: Buffer.byteLength(body) },
    ...{ sha256: createHash('sha256').update(body).digest('hex'), width: 640, height: 360 },
    ...{ durationMs: kind === 'video' ? 12_400 : null, altText: 'Never sent' },
    ...{ file: async () => place, url: async () => '', ...over },
  };
};
