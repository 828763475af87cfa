/** An app of somebody else in a browser: where its authorizations end, and what a person does on the way there. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OAuthClientProvider } from '@modelcontextprotocol/client';
import type { Page } from 'playwright-core';

export interface Callback {
  readonly url: string;
  close(): void;
}

/** The redirect URI of a program on this computer. */
export const openCallback = async (): Promise<Callback> => {
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html; charset=utf-8');
    answer.end('<!doctype html><html lang="en"><title>Done</title><link rel="icon" href="data:,"><p>Done.</p></html>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/callback`, close: () => void server.close() };
};

/**
 * Lets an app into the sandbox: what the person leaves unticked it may not do.
 * @returns what the app receives
 */
export const consent = async (
  page: Page,
  url: string,
  callback: string,
  without: readonly string[] = [],
): Promise<URLSearchParams> => {
  await page.goto(url);
  await page.locator('#mode-test').check();
  for (const scope of without) await page.locator(`#scope-${scope.replace('.', '\\.')}`).uncheck();
  await page.locator('button[value=allow]').click();
  await page.waitForURL(`${callback}?**`);
  return new URL(page.url()).searchParams;
};

/** What an MCP client keeps between its steps; clients of both protocol lines take it. */
export class AppMemory implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly clientMetadata: OAuthClientProvider['clientMetadata'];
  /** Every bearer value that the app ever held. */
  readonly held = new Set<string>();
  asked: URL | null = null;
  #client: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>;
  #tokens: Awaited<ReturnType<OAuthClientProvider['tokens']>>;
  #verifier = '';
  #discovered: Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>;

  constructor(callback: string, name: string) {
    this.redirectUrl = callback;
    this.clientMetadata = {
      client_name: name,
      redirect_uris: [callback],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client: NonNullable<Awaited<ReturnType<OAuthClientProvider['clientInformation']>>>): void {
    this.#client = client;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens: NonNullable<Awaited<ReturnType<OAuthClientProvider['tokens']>>>): void {
    this.#tokens = tokens;
    for (const value of [tokens.access_token, tokens.refresh_token]) if (value !== undefined) this.held.add(value);
  }
  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
  saveDiscoveryState(
    state: NonNullable<Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>>,
  ): void {
    this.#discovered = state;
  }
  discoveryState() {
    return this.#discovered;
  }
}
