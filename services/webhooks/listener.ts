import { Socket } from 'node:net';
import { Client } from 'pg';

/** How often a statement asks the connection for a sign of life, and how long an answer may take. Milliseconds. */
const beatMs = 10_000;
const answerMs = 5_000;

/** A connection of its own that is told when rows are queued or endpoints change. While it is lost the poll finds them. */
export class Listener {
  readonly #url: string;
  readonly #heard: () => void;
  readonly #beatMs: number;
  /** Of the connection that listens. */
  #socket: Socket | null = null;

  constructor(url: string, heard: () => void, times: { readonly beatMs?: number } = {}) {
    this.#url = url;
    this.#heard = heard;
    this.#beatMs = times.beatMs ?? beatMs;
  }

  /** Connects if it is not. @throws when the database is away, or silent. */
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
    client.on('notification', this.#heard);
    this.#socket = socket;
    try {
      await client.connect();
      await client.query('listen webhook_queue');
    } catch (error) {
      lost();
      throw error;
    }
    // No other statement runs on this connection, so only a beat notices that it fell silent.
    beat = setInterval(() => client.query('select 1').catch(lost), this.#beatMs);
    // What was queued before it listened was not heard.
    this.#heard();
  }

  /** Without a goodbye, which a silent server would not answer: the session holds nothing that could be lost. */
  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}
