import { Client } from 'pg';

/** A connection of its own that is told when rows are queued or endpoints change. While it is lost the poll finds them. */
export class Listener {
  readonly #url: string;
  readonly #heard: () => void;
  #client: Client | null = null;

  constructor(url: string, heard: () => void) {
    this.#url = url;
    this.#heard = heard;
  }

  /** Connects if it is not. @throws when the database is away. */
  async ensure(): Promise<void> {
    if (this.#client !== null) return;
    const client = new Client({ connectionString: this.#url, application_name: 'webhooks listener', keepAlive: true });
    const lost = (): void => {
      if (this.#client === client) this.#client = null;
    };
    client.on('error', lost).on('end', lost);
    client.on('notification', this.#heard);
    this.#client = client;
    try {
      await client.connect();
      await client.query('listen webhook_queue');
    } catch (error) {
      lost();
      await client.end().catch(() => undefined);
      throw error;
    }
    // What was queued before it listened was not heard.
    this.#heard();
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }
}
