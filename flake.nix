# hatf and metatfc for Nix: `nix run .#hatf -- tour`, `nix profile install .`.
{
  description = "Heap allocation traces, and binary trace formats that describe themselves";

  # Its Rust has to be at least the rust-version of Cargo.toml.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    let
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;

      # Both commands, with their manual pages and completions.
      commands =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "metatf";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [
            "--package=hatf"
            "--package=metatfc"
          ];
          # The tests record programs of the machine, which a sandbox does not have.
          doCheck = false;
          postInstall = ''
            for command in hatf metatfc; do
              $out/bin/$command --install-docs $out/share
            done
          '';
          meta = {
            description = "Heap allocation traces, and binary trace formats";
            homepage = manifest.repository;
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "hatf";
            platforms = pkgs.lib.platforms.linux;
          };
        };

      program = package: name: {
        type = "app";
        program = "${package}/bin/${name}";
      };
      each = nixpkgs.lib.genAttrs [
        "x86_64-linux"
        "aarch64-linux"
      ];
    in
    {
      packages = each (system: rec {
        default = commands nixpkgs.legacyPackages.${system};
        metatf = default;
      });
      apps = each (
        system:
        let
          package = self.packages.${system}.default;
        in
        rec {
          hatf = program package "hatf";
          metatfc = program package "metatfc";
          default = hatf;
        }
      );
    };
}
