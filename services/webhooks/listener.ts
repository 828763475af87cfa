import { Socket } from 'node:net';
import { Client } from 'pg';

/** How often a statement checks the connection, and how long its answer may take, milliseconds. */
const beatMs = 10_000;
const answerMs = 5_000;

/**
 * A separate connection that Postgres notifies of queued rows and changed endpoints. While it is lost, polling finds
 * both.
 */
export class Listener {
  readonly #url: string;
  readonly #onChange: () => void;
  readonly #beatMs: number;
  #socket: Socket | null = null;

  constructor(url: string, onChange: () => void, times: { readonly beatMs?: number } = {}) {
    this.#url = url;
    this.#onChange = onChange;
    this.#beatMs = times.beatMs ?? beatMs;
  }

  /** Connects unless it is connected. @throws when the database is unavailable or does not answer */
  async ensure(): Promise<void> {
    if (this.#socket !== null) return;
    const socket = new Socket();
    const client = new Client({
      connectionString: this.#url,
      application_name: 'webhooks listener',
      connectionTimeoutMillis: answerMs,
      query_timeout: Math.min(answerMs, this.#beatMs / 2),
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      stream: () => socket,
    });
    let beat: NodeJS.Timeout | undefined;
    const lost = (): void => {
      clearInterval(beat);
      if (this.#socket === socket) this.#socket = null;
      socket.destroy();
    };
    client.on('error', lost).on('end', lost);
    client.on('notification', this.#onChange);
    this.#socket = socket;
    try {
      await client.connect();
      await client.query('listen webhook_queue');
    } catch (error) {
      lost();
      throw error;
    }
    // No other statement runs on this connection, so only this one notices when the server no longer answers.
    beat = setInterval(() => client.query('select 1').catch(lost), this.#beatMs);
    // Rows queued before it listened sent no notification to it.
    this.#onChange();
  }

  /** Closes at once: a silent server would not answer a goodbye, and the session has no state to lose. */
  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}
