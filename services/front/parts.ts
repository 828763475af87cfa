import type { Registry } from 'prom-client';
import { type GuardSettings, guardOf } from '#runtime/egress/own-hosts.ts';
import type { Part } from '#services/api/parts.ts';
import { oauthPart } from '#services/auth/oauth/part.ts';
import { consolePart } from '#services/console/part.ts';
import { mcpPart } from '#services/mcp/part.ts';
import { pagesParts } from '#services/pages/part.ts';

/** Everything that the public server serves beside the api, in the order in which it is asked. */
export const frontParts = (config: GuardSettings, registry: Registry): readonly Part[] => [
  oauthPart({
    registry,
    egress: ({ baseUrl, authUrl, mcpUrl, consoleUrl }) =>
      guardOf(config, () => [baseUrl(), authUrl(), mcpUrl(), consoleUrl()]),
  }),
  mcpPart(),
  consolePart(),
  ...pagesParts,
];
