import type { Registry } from 'prom-client';
import { EgressGuard } from '#runtime/egress/guard.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Part } from '#services/api/parts.ts';
import { oauthPart } from '#services/auth/oauth/part.ts';
import { consolePart } from '#services/console/part.ts';
import { mcpPart } from '#services/mcp/part.ts';

/** Everything that the public server serves beside the api, in the order in which it is asked. */
export const frontParts = ({ privateTargets }: Config, registry: Registry): readonly Part[] => [
  oauthPart({
    registry,
    egress: ({ baseUrl, authUrl, mcpUrl, consoleUrl }) =>
      new EgressGuard({
        privateTargets,
        ownHosts: () => [baseUrl(), authUrl(), mcpUrl(), consoleUrl()].map((url) => new URL(url).host),
      }),
  }),
  mcpPart(),
  consolePart(),
];
