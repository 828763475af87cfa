/** An agent that carries out a request of a person with the tools of the MCP server, for tests. */
import assert from 'node:assert/strict';
import { type Called, type Mcp, worked } from './mcp.ts';

export type Data = Readonly<Record<string, unknown>>;

/** A conversation about one request. */
export class Agent {
  readonly #mcp: Mcp;
  calls = 0;
  constructor(mcp: Mcp) {
    this.#mcp = mcp;
  }

  async call(name: string, args: Data = {}): Promise<Called> {
    this.calls += 1;
    const answer = await this.#mcp.call(name, args);
    worked(answer);
    return answer;
  }

  async ask(name: string, args: Data = {}): Promise<Data> {
    return (await this.call(name, args)).data;
  }

  /** The client that a person means. */
  async client(search: string): Promise<{ readonly clientId: string; readonly timezone: string }> {
    const { clients } = await this.ask('find_clients', { search });
    const [first, ...others] = clients as { clientId: string; timezone: string }[];
    assert.ok(first !== undefined && others.length === 0, `one client is ${search}`);
    return first;
  }
}
