/**
 * A worker that publishes one post with a file to the real server, in a process of its own: it is killed at one moment,
 * a step that has become durable or an answer that has come. Its only argument says what; its steps stand in a file.
 */
import { writeFileSync, writeSync } from 'node:fs';
import type { Credential } from '#contracts/ports/credentials.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { BlueskyAdapter } from '#infra/platforms/bluesky/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { boundaryDeadlineMs } from '#test/support/networks/bluesky-world.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';

export interface Asked {
  readonly secret: Credential['secret'];
  readonly request: Omit<PublishRequest, 'media'>;
  readonly media: Omit<PublishMedia, 'file' | 'url'>;
  /** Where the file of the media is. */
  readonly file: string;
  /** Origin of the service of videos, for a video. */
  readonly videoService?: string;
  /** Where the steps are written. */
  readonly steps: string;
  /** Number of the moment at which it dies. */
  readonly diesAt: number;
}

const asked = JSON.parse(process.argv[2] ?? '{}') as Asked;
let moments = 0;
const moment = (name: string): void => {
  if (moments === asked.diesAt) {
    writeSync(1, name);
    process.kill(process.pid, 'SIGKILL');
  }
  moments += 1;
};

class DurableSteps extends RecordedSteps {
  override async checkpoint(step: string, data: Json): Promise<void> {
    await super.checkpoint(step, data);
    this.#write(step);
  }

  override async boundary(data: Json): Promise<AbortSignal> {
    const signal = await super.boundary(data);
    this.#write('boundary');
    return signal;
  }

  #write(step: string): void {
    writeFileSync(asked.steps, JSON.stringify(this.checkpoints));
    moment(`after the step ${step}`);
  }
}

const credentials = new MemoryCredentials();
const { request, secret, media, file, steps, videoService } = asked;
const owner = { accountId: request.account.id, workspaceId: '', clientId: '', platform: 'bluesky' } as const;
await credentials.keep(owner, { secret, expiresAt: null });
const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
const adapter = new BlueskyAdapter({
  ...{ credentials, clock: () => Date.now(), boundaryDeadlineMs, videoPollMs: 5 },
  ...(videoService === undefined ? {} : { videoService }),
  http: {
    send: async (call, signal) => {
      const result = await http.send(call, signal);
      moment(`after the answer to ${new URL(call.url).pathname}`);
      return result;
    },
  },
});
writeFileSync(steps, '[]');
const whole = { ...request, media: [{ ...media, file: async () => file, url: async () => '' }] };
const outcome = await adapter.publish(whole, new DurableSteps(whole, boundaryDeadlineMs));
writeSync(1, `ended: ${outcome.kind}`);
