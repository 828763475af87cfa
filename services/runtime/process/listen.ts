import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SetupError } from '#contracts/ports/setup-error.ts';

/** Where a server listens, and the setting that moves it. */
export interface ListenAt {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Name of the port's setting: a variable, or an option of the command line. */
  readonly setting: string;
}

const wordsOf = ({ host, port, setting }: ListenAt, error: NodeJS.ErrnoException): string | null => {
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is in use by another program: choose another port with ${setting} (0 = any free one), or end that program.`;
    case 'EACCES':
      return `This user may not open port ${port} of ${host}: choose a port above 1023 with ${setting}.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `This machine has no address ${host} to open port ${port} on: set HOST or OPS_HOST to one that it has, or to 0.0.0.0 for all.`;
    default:
      return null;
  }
};

/** @returns the port @throws SetupError where a setting can fix it, else the server's error */
export const listen = (server: Server, at: ListenAt): Promise<number> =>
  new Promise((resolve, reject) => {
    const refused = (error: Error): void => {
      const words = wordsOf(at, error);
      reject(words === null ? error : new SetupError(words, { cause: error }));
    };
    server.once('error', refused);
    server.listen(at.port, at.host, () => {
      server.off('error', refused);
      resolve((server.address() as AddressInfo).port);
    });
  });

/** `http://host:port` */
export const originOf = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
