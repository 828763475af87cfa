import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { serviceHolds, standardHolds } from '#services/standalone/receiver.ts';
import { patience } from '#test/support/patience.ts';
import type { Random } from '#test/support/seed.ts';
import type { Load } from './load.ts';

/**
 * Receivers of webhooks that answer as the worst of them do, and a caller that keeps changing their subscriptions. All
 * arrivals are kept, to be compared with the streams afterwards.
 */

export interface Arrival {
  readonly endpointId: string;
  /** Envelope id. */
  readonly id: string;
  readonly type: string;
  readonly attempt: number;
  /** Whether both signatures were valid. */
  readonly signed: boolean;
  /** A whole answer of 2xx was sent. */
  readonly taken: boolean;
}

export const hookNames = ['always', 'widened', 'switched', 'gone'] as const;
type HookName = (typeof hookNames)[number];

interface Hook {
  readonly id: string;
  readonly secret: string;
}

/** A receiver that answers 410 is disabled within this, and enabled again, milliseconds. */
const patienceMs = 60_000 * patience;
/** Milliseconds after which another event is made for it to refuse. */
const refusedMs = 1_000;

export class Hooks {
  readonly arrivals: Arrival[] = [];
  readonly #random: Random;
  readonly #server: Server;
  readonly #hooks = new Map<string, Hook>();
  /** Answers 410 to everything. */
  #gone = false;

  static async open(random: Random): Promise<Hooks> {
    const hooks = new Hooks(random);
    await new Promise<void>((resolve) => hooks.#server.listen(0, '127.0.0.1', resolve));
    return hooks;
  }

  private constructor(random: Random) {
    this.#random = random;
    this.#server = createServer((request, response) => {
      this.#take(request, response).catch(() => request.destroy());
    });
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get ids(): readonly string[] {
    return [...this.#hooks.values()].map(({ id }) => id);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** One endpoint of each name. */
  async prepare(load: Load): Promise<void> {
    for (const name of hookNames) {
      const body = { url: `http://${this.host}/${name}`, events: name === 'widened' ? ['client.*'] : ['*'] };
      const key = randomUUID();
      const { status, code, data } = await load.call('POST', '/webhooks', body, key);
      if (status !== 200) throw new Error(`the webhook ${name} was refused: ${status} ${code}`);
      load.reported.push({ path: '/webhooks', key, body, data, exact: true });
      this.#hooks.set(name, { id: data.id, secret: String(data.secret) });
    }
  }

  /** Changes subscriptions until the signal aborts; leaves all endpoints enabled. */
  async keepChanging(load: Load, signal: AbortSignal): Promise<void> {
    const going = async (): Promise<void> => {
      while (!signal.aborted) {
        await this.#change(load, this.#random.pick(['widen', 'switch', 'leave'] as const));
        await delay(this.#random.int(100, 1_500));
      }
    };
    await going();
    await this.#patch(load, 'switched', { active: true });
  }

  async #change(load: Load, what: 'widen' | 'switch' | 'leave'): Promise<void> {
    if (what === 'widen') {
      const events = this.#random.pick([['*'], ['client.*'], ['post.*', 'target.*'], ['client.*', 'target.published']]);
      await this.#patch(load, 'widened', { events });
    } else if (what === 'switch') {
      await this.#patch(load, 'switched', { active: this.#random.int(0, 1) === 1 });
    } else await this.leave(load);
  }

  /** Answers 410 until it is disabled, then recovers and is enabled. */
  async leave(load: Load): Promise<void> {
    const { id } = this.#hook('gone');
    this.#gone = true;
    const isOff = async (): Promise<boolean> => {
      for (const until = performance.now() + refusedMs; ; await delay(50)) {
        if ((await load.get(`/webhooks/${id}`)).data.active === false) return true;
        if (performance.now() > until) return false;
      }
    };
    for (const limit = performance.now() + patienceMs; ; ) {
      // An event must be sent for the receiver to refuse it. Where it is not sent soon, its sender may have died.
      await load.run('race');
      if (await isOff()) break;
      if (performance.now() > limit) {
        load.violations.push(`webhook ${id} answers 410 and is still on`);
        break;
      }
    }
    // And an event that it misses, which it gets after it recovers.
    await load.run('race');
    this.#gone = false;
    await this.#patch(load, 'gone', { active: true });
  }

  async #patch(load: Load, name: HookName, changes: object): Promise<void> {
    const { id } = this.#hook(name);
    const { status, code } = await load.call('PATCH', `/webhooks/${id}`, changes);
    if (status !== 200) load.violations.push(`webhook ${name} could not be changed: ${status} ${code}`);
  }

  #hook(name: string): Hook {
    const found = this.#hooks.get(name);
    if (found === undefined) throw new Error(`there is no webhook ${name}`);
    return found;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const name = (request.url ?? '/').slice(1);
    // Replays deliver a second time; they have their own endpoint, so no other check sees them.
    if (name === 'replayed') return void response.writeHead(204).end();
    const hook = this.#hooks.get(name);
    // The event about its own registration may arrive before the registration returns its id.
    if (hook === undefined) return void response.writeHead(503).end();
    const { id, type } = JSON.parse(body) as { id: string; type: string };
    const signed = standardHolds(request, body, hook.secret) && serviceHolds(request, body, hook.secret);
    const attempt = Number(request.headers['x-service-attempt']);
    const arrived = (taken: boolean): void =>
      void this.arrivals.push({ endpointId: hook.id, id, type, attempt, signed, taken });
    const fate = name === 'gone' && this.#gone ? 100 : this.#random.int(0, 99);
    if (fate === 100) {
      arrived(false);
      response.writeHead(410).end();
    } else if (fate < 6) {
      arrived(false);
      response.writeHead(500).end('not now');
    } else if (fate < 8) {
      arrived(false);
      response.writeHead(429, { 'retry-after': '1' }).end();
    } else if (fate < 11) {
      arrived(false);
      request.socket.destroy();
    } else if (fate < 14) {
      // Accepted, and its answer is lost: it comes again.
      arrived(true);
      request.socket.destroy();
    } else {
      if (fate < 24) await delay(this.#random.int(20, 200));
      arrived(true);
      response.writeHead(204).end();
    }
  }
}
