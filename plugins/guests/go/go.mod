module vendor.example/wait-for

go 1.24
