"""Print the path of the library that clients of PJRT load, compiled if it is not cached."""

from hlo_oracle.frontends.pjrt.shim import built

if __name__ == "__main__":
    print(built())
